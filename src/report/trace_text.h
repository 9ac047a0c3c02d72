#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/executed.h"
#include "model/outcome.h"
#include "model/trace.h"
#include "report/layout.h"

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

struct TraceTextOptions {
  size_t most_sites = 200;  // per group
  size_t most_threads = 100;
  bool functions = false;
  std::vector<Exposure> exposed{};  // what the functions hint at
  StackDetail stacks = StackDetail::project;
};

// A trace for people: threads, sites that can be copied into `unflake inject`, failures with their
// stacks, and what was lost.
std::string trace_text(const Trace& trace, const Style& style, const TraceTextOptions& options);

// A frame per line, inlined ones too, indented. A stack without project code has its first frames.
std::string stack_text(const TracedStack& stack, const std::vector<TracedImage>& images,
                       StackDetail detail, size_t most_frames = SIZE_MAX);

// "assertion in main at queue_test.cc:57: ..."
std::string failure_line(const TracedFailure& failure, const Trace& trace);

// Each failure and its stack. Of exceptions thrown before it, only the first are shown, and they
// have no stack, unless everything is wanted.
std::string failures_text(const Trace& trace, const Style& style, StackDetail detail);

// What the reader must know before believing the rest: one line each.
std::string losses_text(const Trace& trace, const Style& style);

}  // namespace unflake
