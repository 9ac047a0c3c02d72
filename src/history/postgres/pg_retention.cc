#include "history/postgres/pg_retention.h"

#include <vector>

#include "history/values.h"

namespace unflake {
namespace {

// So many rows of one test go in one transaction.
constexpr int64_t rows_at_once = 100'000;

// Never goes back: what has been forgotten stays so, whatever is kept from now on.
void move_horizon(PgConnection& connection, int64_t project, int64_t passing, int64_t failing) {
  connection.run(
      "INSERT INTO horizons AS known (project, passing_us, failing_us) VALUES ($1, $2, $3)"
      " ON CONFLICT (project) DO UPDATE SET"
      " passing_us = greatest(known.passing_us, excluded.passing_us),"
      " failing_us = greatest(known.failing_us, excluded.failing_us)",
      project, passing, failing);
}

std::vector<int64_t> tests_of(PgConnection& connection, int64_t project) {
  const PgRows rows = connection.run("SELECT id FROM tests WHERE project = $1::bigint", project);
  std::vector<int64_t> tests;
  for (int row = 0; row < rows.size(); ++row) tests.push_back(rows.integer(row, 0));
  return tests;
}

template <class... Values>
int64_t delete_of_tests(PgConnection& connection, const std::vector<int64_t>& tests,
                        const char* sql, const Values&... values) {
  int64_t removed = 0;
  for (const int64_t test : tests)
    for (int64_t last = rows_at_once; last == rows_at_once; removed += last)
      last = connection.run(sql, test, rows_at_once, values...).changed();
  return removed;
}

}  // namespace

RetentionCount forget_runs(PgConnection& connection, int64_t project, const Retention& retention,
                           TimePoint now) {
  const std::vector<int64_t> tests = tests_of(connection, project);
  const int64_t passing = cut_off(retention.passing_runs, now);
  const int64_t failing = cut_off(retention.failing_runs, now);
  RetentionCount count;
  if (retention.passing_runs || retention.failing_runs) {
    move_horizon(connection, project, passing, failing);
    count.runs = delete_of_tests(connection, tests, R"sql(
        DELETE FROM runs WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM runs
          WHERE test = $1::bigint AND started_us < greatest($3::bigint, $4::bigint)
            AND started_us < CASE WHEN outcome IN (0, 4) THEN $3::bigint ELSE $4::bigint END
          LIMIT $2::bigint)))sql",
                                 passing, failing);
  }
  if (retention.outputs)
    count.outputs = delete_of_tests(connection, tests, R"sql(
        DELETE FROM outputs WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM outputs WHERE test = $1::bigint AND started_us < $3::bigint
          LIMIT $2::bigint)))sql",
                                    cut_off(retention.outputs, now));
  return count;
}

std::optional<TimePoint> forgotten_before(PgConnection& connection, int64_t project) {
  const PgRows rows = connection.run(
      "SELECT greatest(passing_us, failing_us) FROM horizons WHERE project = $1::bigint", project);
  if (rows.empty()) return std::nullopt;
  return to_time(rows.integer(0, 0));
}

}  // namespace unflake
