#pragma once

#include <string>
#include <vector>

#include "util/result.h"
#include "util/time.h"

namespace unflake::eval {

struct ToolResult {
  int status = -1;  // exit status; 128 + N when a signal ended it
  bool timed_out = false;
  Duration elapsed{};
  std::string output, errors;
};

// Runs a program in a folder, where its output is kept until it has ended. May be called by several
// threads, each with a folder of its own.
Result<ToolResult> run_tool(const std::vector<std::string>& words, const std::string& folder,
                            Duration at_most);

}  // namespace unflake::eval
