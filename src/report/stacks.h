#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"

namespace unflake {

// Of a stack, the frames in project code and how many are between them, or every frame.
enum class StackDetail { project, full };

// "descend tree.cc:14 (126 times)": for a function that calls itself endlessly.
std::string repeated_frame(const std::string& frame, size_t times);

// "... 12 frames of libraries"
std::string left_out_frames(size_t count);

// Where the threads of a run were when it ran out of time: a line per thread and frame, safe to
// print. Threads at the same place are shown together. Where a thread waits is always shown.
std::vector<std::string> timeout_stack_lines(const ProcessResult& process, StackDetail detail);

// The end of a run's output, where failures usually explain themselves: safe to print, bounded.
struct Excerpt {
  std::vector<std::string> lines;
  uint64_t left_out = 0;  // lines before these
  uint64_t left_out_bytes =
      0;  // where it is not known how many lines: too little of that part was kept
};

Excerpt last_lines(const ProcessResult& process, size_t most);

// At most about `most` bytes of a run's output, cut in the middle and without colours: valid UTF-8
// without control characters except line feed and tab.
std::string printable_output(const ProcessResult& process, size_t most);

// Any other text of a test, made safe in the same way and cut at its end.
std::string bounded_text(std::string_view text, size_t most);
inline constexpr size_t longest_text = 4 * 1024;  // in what programs read

}  // namespace unflake
