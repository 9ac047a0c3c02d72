#include "history/sqlite/summariser.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "history/codes.h"
#include "history/sqlite/unplaced_runs.h"
#include "history/values.h"

namespace unflake {
namespace {

// A test whose every failure has a signature of its own would fill the memory with them.
constexpr size_t most_signatures = 200;

// Stored numbers may be damaged; a duration that makes no sense becomes the nearest that does.
Duration duration_of(double microseconds) {
  return Duration(static_cast<int64_t>(std::clamp(microseconds, 0.0, 1e18)));
}

// The nearest-rank quantile: a duration that was really measured. Reorders the values.
Duration quantile(std::vector<int64_t>& values, double fraction) {
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto nth = values.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), nth, values.end());
  return duration_of(static_cast<double>(*nth));
}

void set_quantiles(std::vector<int64_t>& values, DurationSummary& durations) {
  if (values.empty()) return;
  durations.median = quantile(values, 0.5);
  durations.p95 = quantile(values, 0.95);
}

void set_quantiles(const Histogram& histogram, DurationSummary& durations) {
  if (durations.runs == 0) return;
  const auto within_range = [&](int64_t microseconds) {
    const Duration value = duration_of(static_cast<double>(microseconds));
    return std::max(durations.min, std::min(value, durations.max));
  };
  durations.median = within_range(histogram.quantile(0.5));
  durations.p95 = within_range(histogram.quantile(0.95));
  durations.approximate = true;
}

DurationSummary describe_durations(const Total& total) {
  if (total.runs == 0) return {};
  DurationSummary durations;
  durations.runs = total.runs;
  durations.min = duration_of(static_cast<double>(total.min_us));
  durations.max = duration_of(static_cast<double>(total.max_us));
  durations.mean = duration_of(total.sum_us / static_cast<double>(total.runs));
  return durations;
}

Histogram fresh_durations(const Totals& totals, const HistogramKey& key) {
  const auto found = totals.durations.find(key);
  return found != totals.durations.end() ? found->second : Histogram();
}

}  // namespace

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
  Total all, passing, failing, skipped;
  for (const auto& [key, total] : totals_.of_test(test)) {
    const OutcomeKind outcome = outcome_from_code(key.outcome);
    all.merge(total);
    (is_failing(outcome) ? failing : outcome == OutcomeKind::pass ? passing : skipped).merge(total);
  }
  TestSummary summary;
  summary.test = id;
  summary.passes = passing.runs;
  summary.failures = failing.runs;
  summary.skips = skipped.runs;
  summary.first = to_time(all.first_us);
  summary.last = to_time(all.last_us);
  summary.pass_durations = describe_durations(passing);
  summary.fail_durations = describe_durations(failing);
  if (all.runs <= exact_up_to_)
    add_exact_quantiles(test, summary);
  else
    add_approximate_quantiles(test, summary);
  add_signatures(test, summary);
  return summary;
}

void Summariser::add_exact_quantiles(int64_t test, TestSummary& summary) {
  std::vector<int64_t> passes, failures;
  const auto add = [&](const RunRow& run) {
    const OutcomeKind outcome = outcome_from_code(run.outcome);
    if (outcome == OutcomeKind::pass) passes.push_back(run.duration_us);
    if (is_failing(outcome)) failures.push_back(run.duration_us);
  };
  for (Query query(runs_, test); query.next();) add(read_run(query));
  for_each_unplaced(database_, test, add);
  set_quantiles(passes, summary.pass_durations);
  set_quantiles(failures, summary.fail_durations);
}

void Summariser::add_approximate_quantiles(int64_t test, TestSummary& summary) {
  Histogram passes = fresh_durations(totals_, {test, false});
  Histogram failures = fresh_durations(totals_, {test, true});
  for (Query query(histograms_, test); query.next();) {
    Histogram& histogram = query.integer(0) != 0 ? failures : passes;
    histogram.add(static_cast<int>(query.integer(1)), sane_count(query.integer(2)));
  }
  set_quantiles(passes, summary.pass_durations);
  set_quantiles(failures, summary.fail_durations);
}

void Summariser::add_signatures(int64_t test, TestSummary& summary) {
  std::vector<std::pair<TotalKey, const Total*>> found;
  for (const auto& [key, total] : totals_.of_test(test))
    if (is_failing(outcome_from_code(key.outcome))) found.emplace_back(key, &total);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second->runs > b.second->runs; });
  summary.signature_count = static_cast<int64_t>(found.size());
  found.resize(std::min(found.size(), most_signatures));
  for (const auto& [key, total] : found) summary.signatures.push_back(describe(key, *total));
}

SignatureSummary Summariser::describe(const TotalKey& key, const Total& total) {
  SignatureSummary summary;
  summary.outcome = outcome_from_code(key.outcome);
  summary.runs = total.runs;
  summary.first = to_time(total.first_us);
  summary.last = to_time(total.last_us);
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
