#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace unflake {

// Whether the agent can be loaded into this program: an error says why not and what to do. A script
// is fine: what counts is the programs that it starts.
Result<void> check_loadable(const std::string& path);

// Whether it is a program that reports its crashes itself, and comes first: a sanitizer's
// run-time wants nothing to be loaded before it.
bool has_sanitizer(const std::string& path);

// Whether glibc's loader starts it: others call constructors in their own way.
bool has_glibc_loader(const std::string& path);

// The libraries that the loader would load for a program, by their real paths, as far as they are
// found in the places where it looks: the program's own run paths, `library_path` (as
// LD_LIBRARY_PATH has it) and the system's folders.
std::vector<std::string> needed_libraries(const std::string& program,
                                          std::string_view library_path);

}  // namespace unflake
