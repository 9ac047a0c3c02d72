#pragma once

#include <string>
#include <vector>

#include "model/executed.h"
#include "model/plan.h"
#include "model/trace.h"
#include "report/explanation_pages.h"
#include "report/layout.h"
#include "util/json.h"

namespace unflake {

// A run's outcome and its trace as one JSON object, described in docs/formats.md.
std::string trace_json(const Test& test, const ExperimentResult& result,
                       const std::vector<Exposure>& exposed = {});

nlohmann::ordered_json code_notes_json(const std::vector<CodeNote>& notes);

// An explanation as one JSON object, described in docs/formats.md.
std::string explanation_json(const ExplanationReport& report);

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
