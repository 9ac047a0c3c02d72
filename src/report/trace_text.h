#pragma once

#include <string>

#include "report/style.h"
#include "trace/trace.h"

namespace unflake {

struct TraceTextOptions {
  size_t most_sites = 200;  // per group
  size_t most_threads = 100;
  bool functions = false;
};

// A trace for people: threads, sites that can be copied into `unflake inject`, failures with their
// stacks, and what was lost.
std::string trace_text(const Trace& trace, const Style& style, const TraceTextOptions& options);

// One frame a line, inlined ones too, indented.
std::string stack_text(const TracedStack& stack, const std::vector<TracedImage>& images,
                       size_t most_frames = 32);

// "assertion in main at queue_test.cc:57: ..."
std::string failure_line(const TracedFailure& failure, const Trace& trace);

// What the reader must know before believing the rest: one line each.
std::string losses_text(const Trace& trace, const Style& style);

}  // namespace unflake
