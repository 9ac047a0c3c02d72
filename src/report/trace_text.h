#pragma once

#include <cstdint>
#include <string>

#include "model/trace.h"
#include "report/layout.h"
#include "report/stacks.h"

namespace unflake {

struct TraceTextOptions {
  size_t most_sites = 200;  // per group
  size_t most_threads = 100;
  bool functions = false;
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
