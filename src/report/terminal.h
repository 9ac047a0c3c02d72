#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "report/layout.h"
#include "report/search_text.h"
#include "report/summary.h"
#include "report/trace_text.h"

namespace unflake {

struct RunningTest {
  TestId id;
  std::string label;  // safe to print
  int attempt = 1;
  Duration since{};
};

// A session's progress: what the live bar and the status lines show. Times are the caller's clock.
class Progress {
 public:
  void begin(const SessionStarted& session, Duration now);
  void start(const RunStarted& run, Duration now);
  void end(const RunEnded& run);
  void end(const TestEnded& test);

  Duration elapsed(Duration now) const { return now - began_; }
  const std::vector<RunningTest>& running() const { return running_; }  // longest first
  // "34/700 runs, 2 failures"
  std::string counts() const;

 private:
  size_t wanted_runs() const;

  Duration began_{};
  std::optional<Duration> allowed_;
  int repeat_ = 1;
  size_t open_tests_ = 0;
  size_t runs_of_ended_tests_ = 0;
  size_t done_ = 0;
  size_t failures_ = 0;
  std::vector<RunningTest> running_;
};

// A run that was stopped from outside says nothing about its test.
bool was_cancelled(const RunEnded& run);

// How a test is named in lines that people read.
std::string label_of(const Test& test);

// The last line of a terminal, rewritten in place while tests run. Every change of the screen is
// one write, so that nothing flickers; lines are printed above the bar.
class LiveBar {
 public:
  // The width is asked for at every update, because windows are resized.
  LiveBar(Sink& sink, bool enabled, std::function<int()> width);
  ~LiveBar() { hide(); }
  LiveBar(const LiveBar&) = delete;
  LiveBar& operator=(const LiveBar&) = delete;

  void refresh(const Progress& progress, Duration now);  // draws at most ten times a second
  void print(std::string_view lines);
  void hide();

 private:
  Sink& sink_;
  bool enabled_;
  std::function<int()> width_;
  std::string shown_;
  std::optional<Duration> drawn_at_;
};

// "[ 12 s] 34/700 runs, 2 failures | server_test:Server.Push 1.20 s, +3" in at most `width`
// columns.
std::string bar_text(const Progress& progress, Duration now, size_t width);

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

// Shows people what happens in a session while it happens, and at the end everything that matters
// again, so that the end of a CI log is enough.
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
