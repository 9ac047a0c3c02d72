#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"
#include "history/sqlite/session_runs.h"
#include "history/sqlite/session_sums.h"

namespace unflake {

// Brings runs into `staged_runs` and into the sums over sessions.
class Staging {
 public:
  Staging(Database& database, int64_t project);

  // Inside a transaction: the runs of one session that are new, in the order of their key.
  std::vector<RunRow> stage(std::vector<RunRow> runs);

  // Everything that waits in `fresh_runs`, in short transactions. Says whose runs it was.
  std::set<int64_t> stage_fresh();

 private:
  int64_t stage_some_fresh(std::set<int64_t>& sessions);
  std::vector<RunRow> insert_new(std::vector<RunRow> runs);

  Database& database_;
  int64_t project_;
  SessionRuns stored_;
  SessionSums sums_;
  Statement insert_, is_fresh_, any_fresh_, horizon_;
  Statement some_fresh_, remove_fresh_;
};

}  // namespace unflake
