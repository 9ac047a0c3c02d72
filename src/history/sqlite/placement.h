#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"
#include "history/sqlite/totals.h"

namespace unflake {

// Moves runs from `staged_runs` to where they stay, among the other runs of their test, and adds
// them to the sums over tests. A move touches a page for each test that has a run in it, so there
// are many runs in each; what waits is added up by whoever asks.
class Placement {
 public:
  explicit Placement(Database& database);

  // Moves runs when enough of them wait. The counts are of what was staged since the last call.
  void place_when_due(int64_t runs, int64_t sessions);
  void place_all();

 private:
  bool is_due();
  int64_t place(int64_t most);
  void add_to_runs(const std::vector<RunRow>& runs);
  void note_sessions(const std::vector<RunRow>& runs);

  Database& database_;
  int64_t runs_since_look_, sessions_since_look_;
};

}  // namespace unflake
