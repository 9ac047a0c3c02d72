#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/events.h"
#include "report/layout.h"
#include "report/search_text.h"

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

}  // namespace unflake
