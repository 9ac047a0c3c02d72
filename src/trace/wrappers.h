#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace unflake {

// Functions that several places call only to reach a timing API, such as a library's own mutex,
// event or sleep. Nothing happens there: what happens is in whoever calls them.
class Wrappers {
 public:
  Wrappers() = default;
  // From the stacks of runs; `named` are those that the user has listed, by qualified name.
  explicit Wrappers(const std::vector<const Trace*>& seen,
                    const std::vector<std::string>& named = {});

  bool contains(const Frame& frame) const;

 private:
  friend class WrapperSearch;
  using Function = std::pair<std::string, std::string>;  // its name and file
  std::set<Function> functions_;
  std::set<std::string> named_;
};

// The lines of the project on a stack, innermost first: neither what templates of the standard
// library became nor a framework's own.
std::vector<const Frame*> own_frames(const TracedStack& stack);

// Of these, those from the first one that is in no wrapper; all of them when every one is.
std::vector<const Frame*> frames_above(const TracedStack& stack, const Wrappers& wrappers);

}  // namespace unflake
