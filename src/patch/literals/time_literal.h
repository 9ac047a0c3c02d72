#pragma once

#include <string>
#include <vector>

#include "patch/source/unified_diff.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// Where a call passes a time value, and what it was seen to be.
struct WantedLiteral {
  std::string file;  // as it can be opened
  int line = 0;
  std::string api;  // that the call ends in: "nanosleep", "poll" ...
  Duration value{};
};

// The literal that gives the call its value, found with libclang through constants and variables
// that are initialised once. It must have the value that was seen, to the last digit: a literal
// that only looks right is an error that says why.
Result<SourceEdit> edit_time_literal(const WantedLiteral& wanted, Duration value,
                                     const std::string& compile_commands_folder);

}  // namespace unflake
