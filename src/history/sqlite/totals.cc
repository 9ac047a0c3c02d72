#include "history/sqlite/totals.h"

#include <algorithm>
#include <string>

#include "history/codes.h"

namespace unflake {
namespace {

Total total_of(const RunRow& run) {
  return {.runs = 1,
          .sum_us = static_cast<double>(run.duration_us),
          .min_us = run.duration_us,
          .max_us = run.duration_us,
          .first_us = run.started_us,
          .first_session = run.session,
          .last_us = run.started_us,
          .last_session = run.session};
}

void merge_totals(Query& query, Totals& totals) {
  while (query.next()) {
    Total& total = totals.totals[{query.integer(0), query.integer(1), query.integer(2)}];
    total.merge({.runs = sane_count(query.integer(3)),
                 .sum_us = query.real(4),
                 .min_us = query.integer(5),
                 .max_us = query.integer(6),
                 .first_us = query.integer(7),
                 .first_session = query.integer(8),
                 .last_us = query.integer(9),
                 .last_session = query.integer(10)});
  }
}

template <class... Test>
Totals read_totals_where(Database& database, const std::string& condition, Test... test) {
  Totals totals;
  Statement folded(database,
                   "SELECT test, outcome, signature, runs, sum_us, min_us, max_us, first_us,"
                   " first_session, last_us, last_session FROM totals" +
                       condition);
  Query folded_rows(folded, test...);
  merge_totals(folded_rows, totals);
  Statement fresh(database, "SELECT " UNFLAKE_RUN_COLUMNS " FROM fresh_runs" + condition);
  for (Query query(fresh, test...); query.next();) totals.add(read_run(query));
  return totals;
}

void add_totals(Database& database, const Totals& totals) {
  Statement add(database, R"sql(
      INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs,
        sum_us = sum_us + excluded.sum_us,
        min_us = min(min_us, excluded.min_us),
        max_us = max(max_us, excluded.max_us),
        first_session = iif(excluded.first_us < first_us, excluded.first_session, first_session),
        first_us = min(first_us, excluded.first_us),
        last_session = iif(excluded.last_us >= last_us, excluded.last_session, last_session),
        last_us = max(last_us, excluded.last_us))sql");
  for (const auto& [key, total] : totals.totals)
    add.run(key.test, key.outcome, key.signature, total.runs, total.sum_us, total.min_us,
            total.max_us, total.first_us, total.first_session, total.last_us, total.last_session);
}

void add_histograms(Database& database, const Totals& totals) {
  Statement add(database,
                "INSERT INTO histograms VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET runs = runs + excluded.runs");
  for (const auto& [key, histogram] : totals.durations)
    for (const auto& [bucket, runs] : histogram.buckets())
      add.run(key.test, key.failing, bucket, runs);
}

}  // namespace

RunRow read_run(const Query& query) {
  return {.test = query.integer(0),
          .started_us = query.integer(1),
          .session = query.integer(2),
          .attempt = query.integer(3),
          .duration_us = query.integer(4),
          .outcome = query.integer(5),
          .signature = query.integer(6),
          .plan = query.integer(7)};
}

void Total::merge(const Total& other) {
  if (other.runs == 0) return;
  if (runs == 0) {
    *this = other;
    return;
  }
  runs += other.runs;
  sum_us += other.sum_us;
  min_us = std::min(min_us, other.min_us);
  max_us = std::max(max_us, other.max_us);
  if (other.first_us < first_us) {
    first_us = other.first_us;
    first_session = other.first_session;
  }
  if (other.last_us >= last_us) {
    last_us = other.last_us;
    last_session = other.last_session;
  }
}

void Totals::add(const RunRow& run) {
  totals[{run.test, run.outcome, run.signature}].merge(total_of(run));
  const OutcomeKind outcome = outcome_from_code(run.outcome);
  if (outcome == OutcomeKind::skipped) return;
  durations[{run.test, is_failing(outcome)}].add(Histogram::bucket_of(run.duration_us), 1);
}

int64_t sane_count(int64_t count) {
  return std::clamp<int64_t>(count, 0, int64_t{1} << 40);
}

Totals read_totals(Database& database) {
  return read_totals_where(database, "");
}

Totals read_totals(Database& database, int64_t test) {
  return read_totals_where(database, " WHERE test = ?", test);
}

void add_to_tables(Database& database, const Totals& totals) {
  add_totals(database, totals);
  add_histograms(database, totals);
}

int64_t fold_fresh_runs(Database& database, int64_t most) {
  if (database.integer("SELECT EXISTS (SELECT 1 FROM fresh_runs)") == 0) return 0;
  Statement fresh(database, "SELECT " UNFLAKE_RUN_COLUMNS
                            " FROM fresh_runs"
                            " ORDER BY test, started_us, session, attempt LIMIT ?");
  Statement keep(database, "INSERT INTO runs (" UNFLAKE_RUN_COLUMNS
                           ") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  Statement remove(database,
                   "DELETE FROM fresh_runs"
                   " WHERE (test, started_us, session, attempt) <= (?, ?, ?, ?)");
  Transaction transaction(database);
  Totals totals;
  RunRow run;
  int64_t moved = 0;
  for (Query query(fresh, most); query.next(); ++moved) {
    run = read_run(query);
    keep.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
             run.signature, run.plan);
    if (database.changes() > 0) totals.add(run);
  }
  add_to_tables(database, totals);
  remove.run(run.test, run.started_us, run.session, run.attempt);
  transaction.commit();
  return moved;
}

}  // namespace unflake
