#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/totals.h"
#include "history/store.h"

namespace unflake {

// Answers questions about a project's tests. Each answer comes from one state of the database,
// whatever others write meanwhile: the totals plus the runs that are not in them yet.
class Reader {
 public:
  Reader(Database& database, int64_t project) : database_(database), project_(project) {}

  std::optional<TimePoint> find_session(const std::string& uuid);
  std::vector<TestSummary> summarise(const std::string& pattern, size_t most);
  std::optional<TestSummary> summarise_test(const TestId& test);
  std::vector<TestSummary> summarise_tests(std::span<const TestId> tests);
  std::vector<RecentRun> recent_runs(const TestId& test, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);
  RunCounts count_runs(const TestId& test, const std::string& signature, const Window& window);
  std::optional<LastFailures> last_failures(const SessionQuestion& question);

 private:
  std::optional<int64_t> find_test(const TestId& test);

  Database& database_;
  int64_t project_;
};

}  // namespace unflake
