#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/site.h"

namespace unflake {

// A thread before it has a name that people can read.
struct Spawned {
  uint64_t name = 0;  // as the agent hashes them
  uint64_t thread_class = 0;
  std::string executable;  // base name; empty: the test's own
  std::string place;       // that spawned it; empty: it is the first of its program, or unknown
  uint32_t ordinal = 0;
};

// Names the threads of one test, the same way in every run.
class ThreadBook {
 public:
  // All threads of a run at once: whether a place is enough of a name depends on the others.
  std::vector<ThreadName> name_threads(const std::vector<Spawned>& threads);

  // By the text of a name, or of a class (`#*`); nothing when no run has shown such a thread.
  const ThreadName* find(const std::string& text) const;
  std::vector<std::string> names() const;

 private:
  const std::string& class_text(const Spawned& thread);

  using Class = std::pair<std::string, uint64_t>;               // executable and class
  std::map<std::string, std::set<uint64_t>> classes_of_place_;  // with the executable
  std::map<Class, std::string> class_texts_;
  std::map<std::string, ThreadName> known_;
};

}  // namespace unflake
