#pragma once

#include <string>

#include "util/result.h"

namespace unflake {

// Whether the agent can be loaded into this program: an error says why not and what to do. A script
// is fine: what counts is the programs that it starts.
Result<void> check_loadable(const std::string& path);

// Whether it is a program that reports its crashes by itself, and first of all: a sanitizer's
// run-time wants nothing to be loaded before it.
bool has_sanitizer(const std::string& path);

// Whether glibc's loader starts it: other ones call constructors in their own way.
bool has_glibc_loader(const std::string& path);

}  // namespace unflake
