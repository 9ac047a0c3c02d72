#pragma once

#include <string>
#include <vector>

#include "model/events.h"
#include "model/explore_report.h"
#include "model/repro.h"
#include "report/layout.h"

namespace unflake {

// Failing runs of one test that show the same failure.
struct FailureGroup {
  std::string signature;
  OutcomeKind kind = OutcomeKind::fail;
  std::string headline;  // safe to print
  int runs = 0;
};

// What the runs of one test have shown so far. A test whose failures are all different must not
// fill the memory: beyond some number they share one group.
class TestLog {
 public:
  // The group that this failing run belongs to, the run counted in.
  const FailureGroup& count(const Outcome& outcome);
  const std::vector<FailureGroup>& groups() const { return groups_; }

  std::string last_status;  // of the last run: "FAIL", "CRASH SIGSEGV"
  Duration last_duration{};
  std::string last_reason;  // why it was skipped

 private:
  FailureGroup& group_of(const Outcome& outcome);

  std::vector<FailureGroup> groups_;
};

// "PASS", "FAIL", "CRASH SIGSEGV", "TIMEOUT", "SKIP".
std::string status_word(const ExperimentResult& result);

// The first failure's headline, safe to print, and how many more there are.
std::string failure_headline(const Outcome& outcome);

// One line for every failure that the test showed, most frequent first.
std::string group_lines(const TestLog& log);

// A search for people: what is tried and why, as it happens, and what was found. A live one counts
// the runs without their own line on the last line of the terminal.
class SearchReport : public Consumer {
 public:
  SearchReport(Sink& sink, bool colour, bool live = false)
      : sink_(sink), style_(colour), live_(live) {}
  ~SearchReport() override { print(""); }
  void on(const Event& event) override;

 private:
  void tell(const SearchStarted& search);
  void tell(const SearchStep& step);
  void tell(const TrialEnded& trial);
  void tell(const FailureReproduced& reproduced);
  void tell(const Note& note);
  void tell(const SearchEnded&) { print(""); }
  template <class Other>
  void tell(const Other&) {}

  void print(const std::string& lines);
  void count(const TrialEnded& trial);
  void tell_profile();
  std::string failure_text(const Outcome& outcome);

  Sink& sink_;
  const Style style_;
  const bool live_;
  bool is_counting_ = false;  // the last line of the terminal is a count
  std::string strategy_;      // whose steps were shown last
  std::string failure_;       // that was shown last
  bool wants_any_ = true;     // failure, not a given one
  int reruns_ = 0;
  int profile_runs_ = 0, profile_failures_ = 0;
};

// What a repro shows, in a few lines: the failure, the plan, how often it came, the slack.
std::string repro_text(const Repro& repro, const Style& style);

// How late is too late, by all runs that were made with other delays: "96.0 ms (88.0 ms is not
// enough)". Empty: not measured.
std::string slack_words(const Repro& repro);

// "holds until 3.70 s late, fails when 4.05 s late".
std::string margin_words(const Repro& repro);

// What it takes to fail, in a sentence: "a flaw: ...". Empty: it was not judged.
std::string plausibility_words(const Repro& repro);

std::string explore_text(const ExploreReport& report, const Style& style);

// docs/formats.md describes the members.
std::string explore_json(const ExploreReport& report);

std::string races_text(const RaceReport& report, const Style& style);

// docs/formats.md describes the members.
std::string races_json(const RaceReport& report);

}  // namespace unflake
