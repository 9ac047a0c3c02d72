#pragma once

#include <string>
#include <vector>

#include "util/result.h"

namespace unflake {

// How a file is compiled, as far as it matters for reading it. The commands come from
// compile_commands.json in the given folder; without one, from the nearest at or above the file,
// also in folders there whose names begin with "build", "cmake-build" or "out". A header takes the
// flags of the file that is most like it. Without any, C++20 and the folders above as includes.
Result<std::vector<std::string>> compile_flags(const std::string& file, const std::string& folder);

}  // namespace unflake
