#pragma once

#include "report/sink.h"
#include "trace/trace.h"

namespace unflake {

// Writes the trace in the Chrome trace format, which Perfetto and chrome://tracing open: a row per
// thread with its calls, failures as marks. Written event by event: a trace may be large.
void write_chrome_trace(const Trace& trace, Sink& sink);

}  // namespace unflake
