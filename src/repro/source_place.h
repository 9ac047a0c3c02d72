#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/repro.h"
#include "trace/program_code.h"

namespace unflake {

// A site and the source around it.
struct SiteInSource {
  SiteName name;
  SiteContext context;
};

// The text at a line of a function.
SiteContext context_at(const CodeView& code, const std::string& image, const std::string& file,
                       int line, const std::string& function);

// How sure it is that a place is the one that was intended.
struct FoundPlace {
  enum class Kind { unchanged, moved, edited, ambiguous };
  Kind kind = Kind::unchanged;
  size_t index = 0;               // in the candidates
  std::vector<size_t> as_likely;  // of an ambiguous one: the others
};

// The place among those of the program as it is now; nothing when none is like it.
std::optional<FoundPlace> find_place(const SiteInSource& wanted,
                                     const std::vector<SiteInSource>& candidates);

// The last part of a qualified name.
std::string unqualified(const std::string& function);

}  // namespace unflake
