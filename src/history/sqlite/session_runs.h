#pragma once

#include <cstdint>
#include <optional>

#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"

namespace unflake {

// The runs of one test in one session that the sums over sessions have: those in `staged_runs`, and
// those in `runs`, which are found by the stretch of time of `placed_sessions`.
class SessionRuns {
 public:
  explicit SessionRuns(Database& database);

  bool has_placed(int64_t session);
  bool holds(const RunRow& run);  // in `runs`
  int64_t passes(int64_t session, int64_t test);
  bool passed(int64_t session, int64_t test);

  // By start, then by attempt.
  std::optional<RunRow> before(const RunRow& run);
  std::optional<RunRow> after(const RunRow& run);

 private:
  std::optional<RunRow> nearest(Statement& staged, Statement& placed, const RunRow& run,
                                bool latest);

  Statement has_placed_, holds_;
  Statement passes_, passed_;
  Statement staged_before_, placed_before_, staged_after_, placed_after_;
};

}  // namespace unflake
