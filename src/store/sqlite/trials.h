#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

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
