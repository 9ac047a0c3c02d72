#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "report/layout.h"
#include "report/search_text.h"
#include "report/trace_text.h"

namespace unflake {

// What only the command line knows. Each may be left out.
struct SummaryOptions {
  // The options that repeat a shuffled order.
  std::function<std::string(uint64_t seed)> repeat_order;
  // A command to run next for a failed or flaky test; empty: none.
  std::function<std::string(const TestId&, Verdict)> next_step;
};

// Collects what a session has found and says it again at the end.
class Summary {
 public:
  Summary(SummaryOptions options, Style style) : options_(std::move(options)), style_(style) {}

  void begin(const SessionStarted& session);
  void remember(const Note& note);
  // Returns what is left to say about the test when its last run has been shown.
  std::string end(const TestEnded& test, TestLog log);

  // Whether several runs of the test are wanted.
  bool repeated(const TestId& test) const { return repeated_ || repeated_tests_.contains(test); }
  // The failed and the flaky tests so far, at most the last `most` of them.
  std::string found_lines(size_t most) const;
  std::string text(const SessionEnded& session) const;

 private:
  struct Finding {
    TestId id;
    std::string label;
    Verdict verdict;
    Tally tally;
    TestLog log;
    std::optional<GateDecision> gate;
  };

  static int weight_of(const Finding& finding);
  std::string verdict_lines(const Finding& finding) const;
  std::string retried_line(const Finding& finding) const;
  std::string all_lines() const;
  std::string repeated_lines(const Finding& finding) const;
  std::string counts(const SessionEnded& session) const;
  std::string not_run_lines() const;
  std::string slowest_lines(const SessionEnded& session) const;
  std::string seed_line() const;
  std::string next_lines() const;

  SummaryOptions options_;
  Style style_;
  bool repeated_ = false;
  std::set<TestId> repeated_tests_;
  std::string why_repeated_;
  int retries_ = 0;
  std::optional<uint64_t> seed_;
  std::vector<Finding> findings_;       // failed and flaky
  std::map<std::string, int> not_run_;  // by reason
  std::vector<Note> notes_;             // warnings and errors
};

std::string note_lines(const Note& note, const Style& style);

// A test that people should look at.
struct NotableTest {
  enum class Level { error, warning, notice };
  Level level = Level::error;
  TestId test;
  std::string status;  // "failed", "flaky"
  std::string headline;
  std::string file;
  int line = 0;
  std::string why;  // what a gate, or the session, says about it
  Tally tally;
};

std::string_view to_string(NotableTest::Level level);

// Picks from a session what failed, for displays that have little room.
class NotableTests {
 public:
  void take(const RunEnded& run);
  void take(const TestEnded& test);

  // What fails a build first, then in the order in which the tests ended.
  std::vector<NotableTest> most_important_first() const;

 private:
  std::map<TestId, Failure> first_failures_;  // of tests that have not ended
  std::vector<NotableTest> tests_;
};

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
