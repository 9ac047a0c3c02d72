#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/sums.h"
#include "store/store.h"

namespace unflake {

// Turns the totals of tests into summaries, and looks up what they do not hold: quantiles,
// failures, commits.
class Summariser {
 public:
  // Tests with up to `exact_up_to` runs get exact quantiles, which takes reading all of the runs.
  Summariser(Database& database, const Totals& totals, int64_t exact_up_to);

  TestSummary summarise(const TestId& id, int64_t test);

 private:
  void add_exact_quantiles(int64_t test, TestSummary& summary);
  void add_approximate_quantiles(int64_t test, TestSummary& summary);
  void add_signatures(int64_t test, TestSummary& summary);
  SignatureSummary describe(const TotalKey& key, const Total& total);
  std::string commit_of(int64_t session);

  const Totals& totals_;
  int64_t exact_up_to_;
  Database& database_;
  Statement runs_;
  Statement histograms_;
  Statement signature_;
  Statement commit_;
};

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
  std::vector<RecentRun> recent_trials(const TestId& test, const std::string& purpose, size_t most);
  std::vector<TestId> find_tests(const std::string& pattern, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);
  RunCounts count_runs(const TestId& test, const std::string& signature, const Window& window);
  std::optional<LastFailures> last_failures(const SessionQuestion& question);

 private:
  std::optional<int64_t> find_test(const TestId& test);

  Database& database_;
  int64_t project_;
};

// See Store::visit.
Result<void> visit_history(Database& database, int64_t project, const Store::Visitor& visitor);

}  // namespace unflake
