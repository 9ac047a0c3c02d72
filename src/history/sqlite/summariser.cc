#include "history/sqlite/summariser.h"

#include "history/codes.h"
#include "history/sqlite/run_row.h"
#include "history/sqlite/unplaced_runs.h"
#include "history/summary.h"

namespace unflake {

Summariser::Summariser(Database& database, const Totals& totals, int64_t exact_up_to)
    : totals_(totals),
      exact_up_to_(exact_up_to),
      database_(database),
      runs_(database, "SELECT " UNFLAKE_RUN_COLUMNS " FROM runs WHERE test = ?"),
      histograms_(database, "SELECT failing, bucket, runs FROM histograms WHERE test = ?"),
      signature_(database,
                 "SELECT signature, kind, file, line, function, expression, message"
                 " FROM signatures WHERE id = ?"),
      commit_(database, "SELECT commit_id FROM sessions WHERE id = ?") {}

TestSummary Summariser::summarise(const TestId& id, int64_t test) {
  TestSummary summary = summary_of(id, totals_, test);
  if (summary.runs() <= exact_up_to_)
    add_exact_quantiles(test, summary);
  else
    add_approximate_quantiles(test, summary);
  add_signatures(test, summary);
  return summary;
}

void Summariser::add_exact_quantiles(int64_t test, TestSummary& summary) {
  MeasuredDurations durations;
  const auto add = [&](const RunRow& run) { durations.add(run.outcome, run.duration_us); };
  for (Query query(runs_, test); query.next();) add(read_run(query));
  for_each_unplaced(database_, test, add);
  set_exact_quantiles(std::move(durations), summary);
}

void Summariser::add_approximate_quantiles(int64_t test, TestSummary& summary) {
  Histogram passes = totals_.durations_of(test, false);
  Histogram failures = totals_.durations_of(test, true);
  for (Query query(histograms_, test); query.next();) {
    Histogram& histogram = query.integer(0) != 0 ? failures : passes;
    histogram.add(static_cast<int>(query.integer(1)), sane_count(query.integer(2)));
  }
  set_approximate_quantiles(passes, failures, summary);
}

void Summariser::add_signatures(int64_t test, TestSummary& summary) {
  for (const auto& [key, total] : frequent_failures(totals_, test, summary))
    summary.signatures.push_back(describe(key, total));
}

SignatureSummary Summariser::describe(const TotalKey& key, const Total& total) {
  SignatureSummary summary = signature_summary_of(key, total);
  summary.first_commit = commit_of(total.first_session);
  summary.last_commit = commit_of(total.last_session);
  Query query(signature_, key.signature);
  if (!query.next()) return summary;
  summary.signature = query.text(0);
  summary.failure = {.kind = failure_from_code(query.integer(1)),
                     .file = query.text(2),
                     .line = static_cast<int>(query.integer(3)),
                     .function = query.text(4),
                     .expression = query.text(5),
                     .message = query.text(6)};
  return summary;
}

std::string Summariser::commit_of(int64_t session) {
  Query query(commit_, session);
  return query.next() ? query.text(0) : "";
}

}  // namespace unflake
