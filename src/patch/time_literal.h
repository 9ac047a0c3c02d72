#pragma once

#include <string>
#include <vector>

#include "util/duration.h"
#include "util/result.h"

namespace unflake {

// Where a call passes a time value, and what it was seen to be.
struct WantedLiteral {
  std::string file;  // as it can be opened
  int line = 0;
  std::string api;  // that the call ends in: "nanosleep", "poll" ...
  Duration value{};
};

// A piece of a source file and what shall stand there instead.
struct SourceEdit {
  std::string file;
  int line = 0;  // of the literal, which may stand elsewhere than the call
  size_t offset = 0;
  std::string old_text, new_text;
  std::string caution;  // what else changes with it, for people; empty when nothing does
};

// The literal that gives the call its value, found with libclang through constants and variables
// that are initialised once. It must have the value that was seen, to the last digit: a literal
// that only looks right is an error that says why.
Result<SourceEdit> edit_time_literal(const WantedLiteral& wanted, Duration value,
                                     const std::string& compile_commands_folder);

// A diff that `git apply` and `patch -p1` take, with file names relative to `root`.
Result<std::string> unified_diff(const std::vector<SourceEdit>& edits, const std::string& root);

}  // namespace unflake
