#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/sums.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// A row of `incidents` whose failure is flaky, with what its session says.
struct FlakyIncident {
  int64_t session = 0, test = 0, signature = 0, outcome = 0, failures = 0;
  int64_t first_us = 0, last_us = 0, wasted_us = 0;
  int64_t build = 0;  // a number for the build's name
  bool in_build = true;
  bool suppressed = false;
};

// Those of the sessions of a project that began in the window.
void for_each_flaky_incident(Database& database, int64_t project, const Window& window,
                             const std::function<void(const FlakyIncident&)>& take);

// Numbers names in the order in which they are seen.
class Numbering {
 public:
  int64_t of(std::string name) {
    return numbers_.try_emplace(std::move(name), static_cast<int64_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

// A failure is flaky when the test passed on the same code. That it did so in the failure's own
// session is known with the run; this looks into the other sessions of the build and, when the work
// tree was clean, of the commit.
class Flakiness {
 public:
  explicit Flakiness(Database& database);

  // In both directions: passes of this session tell about failures of the others, too.
  void settle(int64_t session);

 private:
  std::vector<int64_t> sessions_with_same_code(int64_t session);
  std::vector<int64_t> unsettled_tests(int64_t session);
  void settle_own_failures(int64_t session, const std::vector<int64_t>& others);
  void settle_failures_of(int64_t other, int64_t session);

  Database& database_;
  SessionRuns runs_;
  Statement same_code_, unsettled_, settle_;
};

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(Database& database, int64_t project, const Window& window,
                                         size_t most);

int64_t count_suppressed_builds(Database& database, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window);

std::vector<Prevalence> prevalence(Database& database, const Window& window);

}  // namespace unflake
