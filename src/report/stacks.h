#pragma once

#include <string>
#include <vector>

#include "util/process_result.h"

namespace unflake {

// Where the threads of a run were when it ran out of time: a line per thread and frame, safe to
// print. Threads at the same place are told together, and deep stacks are cut.
std::vector<std::string> timeout_stack_lines(const ProcessResult& process);

}  // namespace unflake
