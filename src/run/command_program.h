#pragma once

#include <string>

#include "model/test.h"
#include "util/result.h"

namespace unflake {

// The file that a command's process will execute, without links, as /proc/PID/exe shows it.
Result<std::string> program_of(const Command& command);

}  // namespace unflake
