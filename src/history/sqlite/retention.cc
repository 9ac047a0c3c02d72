#include "history/sqlite/retention.h"

#include <chrono>
#include <vector>

#include "history/values.h"

namespace unflake {
namespace {

using Clock = std::chrono::steady_clock;

// Others wait for a transaction, so it ends when it has taken so long.
constexpr std::chrono::milliseconds longest_transaction{50};

// So many rows of one test go at once.
constexpr int64_t rows_at_once = 10'000;

struct Horizon {
  int64_t passing_us = INT64_MIN, failing_us = INT64_MIN;
};

// Never goes back: what has been forgotten stays so, whatever is kept from now on.
Horizon move_horizon(Database& database, int64_t project, const Horizon& wanted) {
  Statement move(database,
                 "INSERT INTO horizons VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
                 " passing_us = max(passing_us, excluded.passing_us),"
                 " failing_us = max(failing_us, excluded.failing_us)");
  move.run(project, wanted.passing_us, wanted.failing_us);
  return wanted;
}

std::vector<int64_t> tests_of(Database& database, int64_t project) {
  Statement find(database, "SELECT id FROM tests WHERE project = ?");
  std::vector<int64_t> tests;
  for (Query query(find, project); query.next();) tests.push_back(query.integer(0));
  return tests;
}

// Deletes of each test as long as there is something to delete. Says how many rows went.
template <class... Values>
int64_t delete_of_tests(Database& database, const std::vector<int64_t>& tests, const char* sql,
                        const Values&... values) {
  Statement remove(database, sql);
  int64_t removed = 0;
  for (size_t next = 0; next < tests.size();) {
    Transaction transaction(database);
    const auto begun = Clock::now();
    while (next < tests.size() && Clock::now() - begun < longest_transaction) {
      remove.run(tests[next], values..., rows_at_once);
      removed += database.changes();
      if (database.changes() < rows_at_once) ++next;
    }
    transaction.commit();
  }
  return removed;
}

}  // namespace

RetentionCount forget_runs(Database& database, int64_t project, const Retention& retention,
                           TimePoint now) {
  const std::vector<int64_t> tests = tests_of(database, project);
  RetentionCount count;
  if (retention.passing_runs || retention.failing_runs) {
    const Horizon horizon =
        move_horizon(database, project,
                     {cut_off(retention.passing_runs, now), cut_off(retention.failing_runs, now)});
    count.runs = delete_of_tests(database, tests, R"sql(
        DELETE FROM runs WHERE (test, started_us, session, attempt) IN (
          SELECT test, started_us, session, attempt FROM runs
          WHERE test = ?1 AND started_us < max(?2, ?3)
            AND started_us < iif(outcome IN (0, 4), ?2, ?3)
          LIMIT ?4))sql",
                                 horizon.passing_us, horizon.failing_us);
  }
  if (retention.outputs)
    count.outputs = delete_of_tests(database, tests, R"sql(
        DELETE FROM outputs WHERE (test, signature, slot) IN (
          SELECT test, signature, slot FROM outputs
          WHERE test = ?1 AND started_us < ?2 LIMIT ?3))sql",
                                    cut_off(retention.outputs, now));
  return count;
}

std::optional<TimePoint> forgotten_before(Database& database, int64_t project) {
  Statement find(database, "SELECT max(passing_us, failing_us) FROM horizons WHERE project = ?");
  Query query(find, project);
  if (!query.next()) return std::nullopt;
  return to_time(query.integer(0));
}

}  // namespace unflake
