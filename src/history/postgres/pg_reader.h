#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/store.h"

namespace unflake {

// Answers questions about a project's tests, each from one state of the database.
class PgReader {
 public:
  PgReader(PgConnection& connection, int64_t project)
      : connection_(connection), project_(project) {}

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

  PgConnection& connection_;
  int64_t project_;
};

}  // namespace unflake
