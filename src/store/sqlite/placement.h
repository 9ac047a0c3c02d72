#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/sums.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// The runs that the sums over tests do not have: `staged_runs` and `fresh_runs`.

void for_each_unplaced(Database& database, const std::function<void(const RunRow&)>& take);

// `staged_runs` is ordered by session, so this looks into each session that has some there. They
// are few: see Placement.
void for_each_unplaced(Database& database, int64_t test,
                       const std::function<void(const RunRow&)>& take);

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

// Puts trials into the database, each behind the plan that it shares with others.
class TrialsTable {
 public:
  explicit TrialsTable(Database& database);

  // Inside a transaction, and never remembered beyond it: others forget plans without trials.
  int64_t plan_row(const std::string& purpose, const std::string& plan);
  void insert(const RunRow& trial);

 private:
  Database& database_;
  Statement insert_plan_, find_plan_, insert_;
};

// Newest first.
std::vector<RecentRun> recent_trials(Database& database, int64_t test, const std::string& purpose,
                                     size_t most);

// All trials of a project in the order in which sessions are visited.
class TrialStream {
 public:
  TrialStream(Database& database, int64_t project);

  // Of the session: none when its trials are over.
  std::optional<RunRow> next_of(int64_t session);
  // What the row's plan stands for.
  void describe(const RunRow& row, RunRecord& trial);

 private:
  Statement all_, plan_;
  Query query_;
  std::optional<RunRow> next_;
};

// Deletes plans that no trial is of.
void forget_unused_plans(Database& database);

}  // namespace unflake
