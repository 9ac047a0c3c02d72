#pragma once

#include <cstdint>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/session_runs.h"

namespace unflake {

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

}  // namespace unflake
