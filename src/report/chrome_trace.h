#pragma once

#include <string>
#include <vector>

#include "model/trace.h"
#include "report/layout.h"

namespace unflake {

// Writes the trace in the Chrome trace format, which Perfetto and chrome://tracing open: a row per
// thread with its calls, failures as marks. Written call by call: a trace may be large.
void write_chrome_trace(const Trace& trace, Sink& sink);

// A run among others in one file.
struct NamedTrace {
  std::string name;  // in front of its processes' names
  const Trace* trace = nullptr;
};

// The same for several runs side by side, each in its own processes and from the same zero.
void write_chrome_traces(const std::vector<NamedTrace>& runs, Sink& sink);

}  // namespace unflake
