#pragma once

#include <string>
#include <vector>

#include "model/process_result.h"

namespace unflake {

// Of a stack, the frames in project code and how many are between them, or every frame.
enum class StackDetail { project, full };

// "descend tree.cc:14 (126 times)": of a function that calls itself without end.
std::string repeated_frame(const std::string& frame, size_t times);

// "... 12 frames of libraries"
std::string left_out_frames(size_t count);

// Where the threads of a run were when it ran out of time: a line per thread and frame, safe to
// print. Threads at the same place are told together. Where a thread waits is shown in any case.
std::vector<std::string> timeout_stack_lines(const ProcessResult& process, StackDetail detail);

}  // namespace unflake
