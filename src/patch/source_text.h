#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace unflake {

// A whole source file; one over 16 MiB is refused.
Result<std::string> read_source(const std::string& path);

// Where each line begins.
std::vector<size_t> line_starts(std::string_view text);

// Absolute and without links where the file exists, else as it was given.
std::string real_path(const std::string& path);

}  // namespace unflake
