#include "history/sqlite/reader.h"

#include <algorithm>

#include "history/codes.h"
#include "history/sqlite/summariser.h"
#include "history/values.h"
#include "stats/intervals.h"
#include "util/text.h"

namespace unflake {
namespace {

// Up to so many runs are read one by one for exact quantiles; the tests of a list share them.
constexpr int64_t exact_runs = 10'000;

std::optional<int64_t> find_test(Database& database, const TestId& test) {
  Statement statement(database,
                      "SELECT id FROM tests WHERE project = 0 AND target = ? AND name = ?");
  Query query(statement, test.target, test.name);
  if (!query.next()) return std::nullopt;
  return query.integer(0);
}

struct RankedTest {
  int64_t row = 0;
  TestId id;
  double failure_rate = 0;  // at least so high, at 95 % confidence
};

double sure_failure_rate(const Totals& totals, int64_t test) {
  int64_t runs = 0, failures = 0;
  for (const auto& [key, total] : totals.of_test(test)) {
    const OutcomeKind outcome = outcome_from_code(key.outcome);
    if (outcome != OutcomeKind::skipped) runs += total.runs;
    if (is_failing(outcome)) failures += total.runs;
  }
  return failures > 0 ? score_interval(failures, runs).low : 0;
}

// Least reliable first. One failure of one run proves less than fifty of a hundred, so the rank
// comes from the lower end of the interval.
std::vector<RankedTest> rank(Database& database, const Totals& totals, const std::string& pattern) {
  std::vector<RankedTest> tests;
  Statement statement(database, "SELECT id, target, name FROM tests ORDER BY target, name");
  for (Query query(statement); query.next();) {
    const int64_t row = query.integer(0);
    TestId id{query.text(1), query.text(2)};
    if (totals.of_test(row).empty() || !glob_match(pattern, to_string(id))) continue;
    tests.push_back({row, std::move(id), sure_failure_rate(totals, row)});
  }
  std::stable_sort(tests.begin(), tests.end(), [](const RankedTest& a, const RankedTest& b) {
    return a.failure_rate > b.failure_rate;
  });
  return tests;
}

}  // namespace

std::vector<TestSummary> Reader::summarise(const std::string& pattern, size_t most) {
  Transaction snapshot(database_, Access::read);
  const Totals totals = read_totals(database_);
  std::vector<RankedTest> tests = rank(database_, totals, pattern);
  tests.resize(std::min(tests.size(), most));
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  Summariser summariser(database_, totals, exact_runs / count);
  std::vector<TestSummary> summaries;
  for (const RankedTest& test : tests) summaries.push_back(summariser.summarise(test.id, test.row));
  return summaries;
}

std::optional<TestSummary> Reader::summarise_test(const TestId& id) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(database_, id);
  if (!test) return std::nullopt;
  const Totals totals = read_totals(database_, *test);
  if (totals.totals.empty()) return std::nullopt;
  return Summariser(database_, totals, exact_runs).summarise(id, *test);
}

std::vector<RecentRun> Reader::recent_runs(const TestId& id, size_t most) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(database_, id);
  if (!test) return {};
  Statement statement(database_, R"sql(
      WITH newest AS (
        SELECT * FROM (SELECT * FROM runs WHERE test = ?1
                       ORDER BY started_us DESC, session DESC, attempt DESC LIMIT ?2)
        UNION
        SELECT * FROM (SELECT * FROM fresh_runs WHERE test = ?1
                       ORDER BY started_us DESC, session DESC, attempt DESC LIMIT ?2))
      SELECT newest.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine, plans.plan
      FROM newest
      LEFT JOIN sessions ON sessions.id = session
      LEFT JOIN signatures ON signatures.id = newest.signature
      LEFT JOIN plans ON plans.id = newest.plan
      ORDER BY newest.started_us DESC, session DESC, attempt DESC LIMIT ?2)sql");
  std::vector<RecentRun> runs;
  for (Query query(statement, *test, std::min<size_t>(most, INT32_MAX)); query.next();)
    runs.push_back({.started = to_time(query.integer(0)),
                    .outcome = outcome_from_code(query.integer(1)),
                    .duration = Duration(query.integer(2)),
                    .attempt = static_cast<int>(query.integer(3)),
                    .signature = query.text(4),
                    .commit = query.text(5),
                    .branch = query.text(6),
                    .machine = query.text(7),
                    .plan_id = query.text(8)});
  return runs;
}

std::optional<std::string> Reader::latest_output(const TestId& id, const std::string& signature) {
  Statement statement(database_, R"sql(
      SELECT output FROM outputs
      WHERE test = (SELECT id FROM tests WHERE project = 0 AND target = ? AND name = ?)
        AND signature = (SELECT id FROM signatures WHERE signature = ?)
      ORDER BY started_us DESC LIMIT 1)sql");
  Query query(statement, id.target, id.name, signature);
  if (!query.next()) return std::nullopt;
  return query.text(0);
}

}  // namespace unflake
