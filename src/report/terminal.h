#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/events.h"
#include "report/findings.h"
#include "report/live_bar.h"
#include "report/progress.h"
#include "report/sink.h"
#include "report/stacks.h"
#include "report/style.h"
#include "report/summary.h"

namespace unflake {

// quiet: failures and the summary; verbose: also starts, passing runs of repeats and their output.
enum class Verbosity { quiet, normal, verbose };

struct TerminalOptions {
  bool colour = false;
  bool live = false;                // keep a bar on the last line; needs `width`
  std::function<int()> width;       // columns of the terminal, now
  std::function<Duration()> clock;  // from any fixed point
  Verbosity verbosity = Verbosity::normal;
  size_t output_lines = 40;  // of a failing run
  StackDetail stacks = StackDetail::project;
  SummaryOptions summary;
};

// Tells people what happens in a session while it happens, and at the end everything that matters
// once more, so that the end of a CI log is enough.
class TerminalReport : public Consumer {
 public:
  TerminalReport(Sink& sink, TerminalOptions options);
  void on(const Event& event) override;

 private:
  void tell(const SessionStarted& session);
  void tell(const RunStarted& run);
  void tell(const RunSlow& run);
  void tell(const RunEnded& run);
  void tell(const TestEnded& test);
  void tell(const Note& note);
  void tell(const StatusRequested& request);
  void tell(const Ticked&) {}
  void tell(const SessionEnded& session);
  template <class OfASearch>
  void tell(const OfASearch&) {}

  void tell_pass(const RunEnded& run);
  void tell_failure(const RunEnded& run, const FailureGroup& group);
  std::string attempt_status(const RunEnded& run) const;
  std::string later_attempt(const TestId& test, int attempt) const;
  std::string output_block(const ProcessResult& process) const;
  std::string open_failures() const;
  bool repeated(const TestId& test) const { return summary_.repeated(test); }

  TerminalOptions options_;
  Style style_;
  LiveBar bar_;
  Progress progress_;
  bool in_session_ = false;
  Summary summary_;
  std::map<TestId, TestLog> logs_;  // of the tests that have not ended
};

}  // namespace unflake
