#pragma once

#include <string>
#include <vector>

#include "model/events.h"
#include "report/style.h"

namespace unflake {

// Failing runs of one test that show the same failure.
struct FailureGroup {
  std::string signature;
  OutcomeKind kind = OutcomeKind::fail;
  std::string headline;  // safe to print
  int runs = 0;
};

// What the runs of one test have shown so far. A test whose failures are all different must not
// fill the memory: from some number on they share one group.
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

}  // namespace unflake
