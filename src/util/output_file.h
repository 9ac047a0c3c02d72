#pragma once

#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

// Creates the missing folders and refuses a path that cannot become a file: better before the
// tests have run for an hour than after.
Result<void> prepare_output_file(const std::string& path);

// Readers see the old file or the whole new one. A pipe or a device is written to instead.
Result<void> replace_file(const std::string& path, std::string_view content);

}  // namespace unflake
