#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/test.h"
#include "run/executor.h"

namespace unflake {

// What the running tests keep from the others: processors, locks, or everything.
class Reservations {
 public:
  explicit Reservations(size_t slots) : slots_(slots) {}

  bool allow(const Test& test) const;
  void occupy(const Test& test);
  void vacate(const Test& test);

 private:
  size_t processors_of(const Test& test) const;

  size_t slots_;
  size_t running_ = 0;
  size_t processors_ = 0;
  bool serial_is_running_ = false;
  std::set<std::string> locks_;
};

// When so many tests fail at their first try that something common to them is broken.
struct MassFailure {
  int tests = 10;      // at least so many
  double share = 0.2;  // and more than this part of those that have run
};

struct RetryPolicy {
  bool sanitizer_reports = true;            // are tried again, too
  std::optional<MassFailure> mass_failure;  // ends all retries; none: nothing does
};

// Trying again is for what may pass: a sanitizer's report is a proof, and what breaks everything
// would break every try.
class RetryRule {
 public:
  explicit RetryRule(const RetryPolicy& policy) : policy_(policy) {}

  void count_first_try(bool failed);
  // Why this failure is not tried again; empty: it may be.
  std::string why_not(const Outcome& outcome);
  bool mass_failure() const { return mass_failure_; }
  // What the user should know and was not told before.
  std::vector<Note> news();

 private:
  const RetryPolicy policy_;
  int tried_ = 0;   // tests with a run that ended
  int failed_ = 0;  // of these, the ones whose first run failed
  bool mass_failure_ = false;
  bool report_seen_ = false;
  bool told_mass_failure_ = false, told_report_ = false;
};

struct PlannedTest {
  enum class Role { test, setup, cleanup };

  std::shared_ptr<const Test> test;
  Role role = Role::test;
  Duration timeout{};
  int retries = 0;
  bool fork_server = false;
  std::optional<int> repeat = std::nullopt;  // instead of the policy's
  Plan plan{};                               // an order that is enforced; empty: a plain run
};

// The selected tests, and around them the set-up and clean-up tests of the fixtures that they
// require, directly or through each other.
std::vector<PlannedTest> with_fixtures(const std::vector<std::shared_ptr<const Test>>& selected,
                                       const std::vector<std::shared_ptr<const Test>>& all);

struct SessionPolicy {
  int repeat = 1;           // runs of each test; 0: as many as the duration holds
  bool until_fail = false;  // a test is not repeated after its first failure
  bool fail_fast = false;   // nothing is started after a failure that is not retried
  RetryPolicy retry;
  std::optional<Duration> duration;
  std::optional<uint64_t> shuffle_seed;
  std::optional<Duration> tick;        // how often a live display wants to be woken
  std::optional<Duration> slow_after;  // a run that takes this long is told while it goes on
  size_t slowest = 0;                  // so many of the slowest tests are told at the end
};

// Runs the tests in rounds, one run of each per round, and tells the stream everything. An error
// means that no more runs could be made; what was found up to then has been told.
Result<SessionEnded> run_session(const std::vector<PlannedTest>& tests, const SessionPolicy& policy,
                                 Executor& executor, EventStream& events);

}  // namespace unflake
