#include "history/sqlite/totals.h"

#include <string>

#include "history/sqlite/unplaced_runs.h"

namespace unflake {
namespace {

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
