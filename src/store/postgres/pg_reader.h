#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"

namespace unflake {

struct NamedTest {
  int64_t row = 0;
  TestId id;
};

// The tests of a project that a glob matches, least reliable first; at least the first `most`.
std::vector<NamedTest> rank_tests(PgConnection& connection, int64_t project,
                                  const std::string& pattern, size_t most);

// In the given order, without tests that never ran. Tests with up to `exact_up_to` runs get exact
// quantiles, which takes reading all of the runs. A few queries answer for all tests together.
std::vector<TestSummary> summarise_tests(PgConnection& connection,
                                         const std::vector<NamedTest>& tests, int64_t exact_up_to);

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
  std::vector<RecentRun> recent_trials(const TestId& test, const std::string& purpose, size_t most);
  std::vector<TestId> find_tests(const std::string& pattern, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);
  RunCounts count_runs(const TestId& test, const std::string& signature, const Window& window);
  std::optional<LastFailures> last_failures(const SessionQuestion& question);

 private:
  std::optional<int64_t> find_test(const TestId& test);

  PgConnection& connection_;
  int64_t project_;
};

Result<void> visit_history(PgConnection& connection, int64_t project,
                           const Store::Visitor& visitor);

}  // namespace unflake
