#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"
#include "history/sqlite/session_runs.h"

namespace unflake {

// Keeps the sums over a session's runs, `session_totals` and `incidents`, exact whatever order runs
// come in. Every run goes through add() once, when it comes into `staged_runs`.
class SessionSums {
 public:
  SessionSums(Database& database, SessionRuns& stored);

  // Runs of one session, in the order of their key, which are in `staged_runs` already.
  void add(std::span<const RunRow> runs);

 private:
  struct Incident {
    int64_t outcome = 0, failures = 0, first_us = 0, last_us = 0, wasted_us = 0;
  };
  using Incidents = std::map<int64_t, Incident>;  // by signature

  void add_totals(std::span<const RunRow> runs);
  std::set<int64_t> failed_tests(int64_t session);
  void add_test(std::span<const RunRow> runs, bool failed_before);
  void add_waste(std::span<const RunRow> runs, Incidents& incidents);
  int64_t passes_of_failed(int64_t session, int64_t test);

  SessionRuns& stored_;
  Statement add_total_, failed_tests_, add_passes_, passes_, add_incident_;
};

}  // namespace unflake
