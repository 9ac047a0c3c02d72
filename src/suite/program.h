#pragma once

#include <string>

#include "util/result.h"

namespace unflake {

// The absolute path of the program that a shell would start for `word`.
Result<std::string> find_program(const std::string& word);

// Without `.` and `..`; left as it is where the current folder is gone.
std::string absolute_path(const std::string& path);

}  // namespace unflake
