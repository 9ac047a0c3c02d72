#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/test.h"
#include "util/time.h"

namespace unflake {

struct Window {
  TimePoint from = TimePoint::min();
  TimePoint until = TimePoint::max();
};

// One failure of one test, in those builds of a window in which the test also passed on the same
// code. A build is all sessions that have its name; a session without one is a build of its own,
// and one whose name says that it is local (history/values.h) is none.
struct FlakyFailure {
  TestId test;
  std::string signature;
  Failure failure;
  OutcomeKind outcome = OutcomeKind::fail;
  int64_t runs = 0;               // that failed so
  int64_t builds = 0;             // in which that happened
  int64_t suppressed_builds = 0;  // of these, the ones that quarantine kept from failing
  Duration wasted{};              // in those failing runs and in the runs that tried again
  TimePoint first, last;
  std::string first_commit, last_commit;
};

// A row of seed figures: what flaky tests did to a project's builds in a window.
struct Prevalence {
  std::string project;
  int64_t tests = 0;
  int64_t builds = 0;
  int64_t failed_builds = 0;  // with a test that failed, flaky or not
  int64_t runs = 0;
  Duration median_build{};
  int64_t flaky_tests = 0;
  int64_t flaky_failures = 0;  // tests that failed and passed in one build, over all builds
  int64_t flaky_builds = 0;    // with at least one of these
  int64_t suppressed = 0;      // flaky failures that quarantine kept from failing a build
};

// How often a test passed and failed in a window.
struct RunCounts {
  int64_t passes = 0;
  int64_t failures = 0;
  int64_t with_signature = 0;  // failures that showed the one that was asked for
  std::optional<TimePoint> last_failure;
  bool cut = false;  // there were too many runs: only the newest were counted
};

// What people and commands did about a flaky test.
struct LifecycleStep {
  enum class Kind { quarantined, lifted, expired, report_opened, report_closed, report_reopened };
  Kind kind = Kind::quarantined;
  TestId test;
  std::string signature;
  TimePoint at;
  std::string commit;  // of a fix, when one is claimed
  std::string reason;
  std::string owner;
  std::string url;
};

std::string_view to_string(LifecycleStep::Kind kind);

// Failures, of one test or of several, that have one cause: what one report is about.
struct CauseRecord {
  enum class State { open, closed };
  int64_t id = 0;  // 0: not saved yet
  std::string title;
  std::vector<std::string> signatures;
  State state = State::open;
  TimePoint opened;
  std::optional<TimePoint> closed;
  int reopened = 0;
  std::string category;  // of the explanation, when the failure was reproduced; empty: unknown
  std::string url;       // of the issue that was opened for it
};

// What is kept for how long; none: for ever. The sums over all runs stay in any case. Trials are in
// no sum, and go first.
struct Retention {
  std::optional<Duration> trials = {};
  std::optional<int> most_trials = {};  // of each test, the newest
  std::optional<Duration> passing_runs;
  std::optional<Duration> failing_runs;
  std::optional<Duration> outputs;
};

struct RetentionCount {
  int64_t trials = 0;
  int64_t runs = 0;
  int64_t outputs = 0;
};

}  // namespace unflake
