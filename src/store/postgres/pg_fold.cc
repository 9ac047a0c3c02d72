#include "store/postgres/pg_fold.h"

#include "store/postgres/pg_connection.h"
#include "store/postgres/pg_flaky.h"
#include "store/summary.h"

namespace unflake {
namespace {

constexpr int64_t fold_lock = 0x756e666c616b6502;  // "unflake", 2

// An answer has to add up what waits; so many rows take it some ten milliseconds.
constexpr int64_t many_fresh = 20'000;

// What one transaction takes, and holds in memory.
constexpr int64_t most_at_once = 100'000;

bool is_due(PgConnection& connection) {
  return connection
             .run("SELECT count(*) FROM (SELECT FROM fresh_runs LIMIT $1::bigint) AS waiting",
                  many_fresh)
             .integer(0, 0) >= many_fresh;
}

void add_totals(PgConnection& connection, const Totals& totals) {
  std::vector<int64_t> test, outcome, signature, runs, min, max, first, first_session, last,
      last_session;
  std::vector<double> sum;
  for (const auto& [key, total] : totals.totals) {
    test.push_back(key.test);
    outcome.push_back(key.outcome);
    signature.push_back(key.signature);
    runs.push_back(total.runs);
    sum.push_back(total.sum_us);
    min.push_back(total.min_us);
    max.push_back(total.max_us);
    first.push_back(total.first_us);
    first_session.push_back(total.first_session);
    last.push_back(total.last_us);
    last_session.push_back(total.last_session);
  }
  connection.run(R"sql(
      INSERT INTO totals AS t (test, outcome, signature, runs, sum_us, min_us, max_us,
                               first_us, first_session, last_us, last_session)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::float8[],
                           $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
                           $11::bigint[])
      ON CONFLICT (test, outcome, signature) DO UPDATE SET
        runs = t.runs + excluded.runs,
        sum_us = t.sum_us + excluded.sum_us,
        min_us = least(t.min_us, excluded.min_us),
        max_us = greatest(t.max_us, excluded.max_us),
        first_session = CASE WHEN excluded.first_us < t.first_us THEN excluded.first_session
                             ELSE t.first_session END,
        first_us = least(t.first_us, excluded.first_us),
        last_session = CASE WHEN excluded.last_us >= t.last_us THEN excluded.last_session
                            ELSE t.last_session END,
        last_us = greatest(t.last_us, excluded.last_us))sql",
                 test, outcome, signature, runs, sum, min, max, first, first_session, last,
                 last_session);
}

void add_histograms(PgConnection& connection, const Totals& totals) {
  std::vector<int64_t> test, failing, bucket, runs;
  for (const auto& [key, histogram] : totals.durations)
    for (const auto& [number, count] : histogram.buckets()) {
      test.push_back(key.test);
      failing.push_back(key.failing);
      bucket.push_back(number);
      runs.push_back(count);
    }
  connection.run(R"sql(
      INSERT INTO histograms AS h (test, failing, bucket, runs)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
      ON CONFLICT (test, failing, bucket) DO UPDATE SET runs = h.runs + excluded.runs)sql",
                 test, failing, bucket, runs);
}

// Says how many there were; none while somebody else folds.
int fold(PgConnection& connection) {
  PgTransaction transaction(connection);
  const bool mine = connection.run("SELECT pg_try_advisory_xact_lock($1::bigint)::int", fold_lock)
                        .integer(0, 0) != 0;
  if (!mine) return 0;
  const PgRows rows = connection.run(
      "DELETE FROM fresh_runs WHERE ctid = ANY (ARRAY("
      "SELECT ctid FROM fresh_runs LIMIT $1::bigint)) RETURNING " UNFLAKE_RUN_COLUMNS,
      most_at_once);
  Totals totals;
  std::vector<RunRow> runs;
  for (int row = 0; row < rows.size(); ++row) {
    runs.push_back(read_run(rows, row));
    totals.add(runs.back());
  }
  add_totals(connection, totals);
  add_histograms(connection, totals);
  count_incidents_of_open_sessions(connection, runs);
  transaction.commit();
  return rows.size();
}

}  // namespace

void fold_when_due(PgConnection& connection) {
  if (!is_due(connection) || fold(connection) == 0) return;
  // Whoever reads the table passes by the rows that were deleted, until they are cleared away.
  connection.run("VACUUM fresh_runs");
}

void fold_everything(PgConnection& connection) {
  while (fold(connection) > 0) {
  }
}

}  // namespace unflake
