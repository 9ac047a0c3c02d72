#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/totals.h"
#include "history/store.h"

namespace unflake {

// Answers questions. Each answer comes from one state of the database, whatever others write
// meanwhile: the totals plus the fresh runs that are not in them yet.
class Reader {
 public:
  explicit Reader(Database& database) : database_(database) {}

  std::vector<TestSummary> summarise(const std::string& pattern, size_t most);
  std::optional<TestSummary> summarise_test(const TestId& test);
  std::vector<RecentRun> recent_runs(const TestId& test, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);

 private:
  Database& database_;
};

}  // namespace unflake
