#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/events.h"
#include "run/executor.h"
#include "search/session/rules.h"

namespace unflake {

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
