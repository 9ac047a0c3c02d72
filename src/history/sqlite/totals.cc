#include "history/sqlite/totals.h"

#include <algorithm>
#include <string>

#include "history/codes.h"
#include "history/sqlite/unplaced_runs.h"

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
Totals read_folded(Database& database, const std::string& condition, Test... test) {
  Totals totals;
  Statement folded(database,
                   "SELECT test, outcome, signature, runs, sum_us, min_us, max_us, first_us,"
                   " first_session, last_us, last_session FROM totals" +
                       condition);
  Query folded_rows(folded, test...);
  merge_totals(folded_rows, totals);
  return totals;
}

}  // namespace

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
  Totals totals = read_folded(database, "");
  for_each_unplaced(database, [&](const RunRow& run) { totals.add(run); });
  return totals;
}

Totals read_totals(Database& database, int64_t test) {
  Totals totals = read_folded(database, " WHERE test = ?", test);
  for_each_unplaced(database, test, [&](const RunRow& run) { totals.add(run); });
  return totals;
}

TotalsTables::TotalsTables(Database& database)
    : add_total_(database, R"sql(
      INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs,
        sum_us = sum_us + excluded.sum_us,
        min_us = min(min_us, excluded.min_us),
        max_us = max(max_us, excluded.max_us),
        first_session = iif(excluded.first_us < first_us, excluded.first_session, first_session),
        first_us = min(first_us, excluded.first_us),
        last_session = iif(excluded.last_us >= last_us, excluded.last_session, last_session),
        last_us = max(last_us, excluded.last_us))sql"),
      add_bucket_(database,
                  "INSERT INTO histograms VALUES (?, ?, ?, ?)"
                  " ON CONFLICT DO UPDATE SET runs = runs + excluded.runs") {}

void TotalsTables::add(const Totals& totals) {
  for (const auto& [key, total] : totals.totals)
    add_total_.run(key.test, key.outcome, key.signature, total.runs, total.sum_us, total.min_us,
                   total.max_us, total.first_us, total.first_session, total.last_us,
                   total.last_session);
  for (const auto& [key, histogram] : totals.durations)
    for (const auto& [bucket, runs] : histogram.buckets())
      add_bucket_.run(key.test, key.failing, bucket, runs);
}

}  // namespace unflake
