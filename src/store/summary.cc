#include "store/summary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stats/rates.h"
#include "store/values.h"

namespace unflake {
namespace {

constexpr int bits = 5;  // of a value's mantissa that name its bucket
constexpr int per_power = 1 << bits;
constexpr int last_bucket = (63 - bits) * per_power + per_power - 1;

}  // namespace

int Histogram::bucket_of(int64_t microseconds) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(microseconds, 0));
  if (value < per_power) return static_cast<int>(value);
  const int shift = std::bit_width(value) - 1 - bits;
  return shift * per_power + static_cast<int>(value >> shift);
}

int64_t Histogram::middle_of(int bucket) {
  bucket = std::clamp(bucket, 0, last_bucket);
  if (bucket < 2 * per_power) return bucket;
  const int shift = bucket / per_power - 1;
  const auto low = static_cast<uint64_t>(bucket % per_power + per_power) << shift;
  return static_cast<int64_t>(low + (uint64_t{1} << shift) / 2);
}

void Histogram::add(int bucket, int64_t runs) {
  runs_ += runs;
  const auto at = std::lower_bound(buckets_.begin(), buckets_.end(), bucket,
                                   [](const Bucket& b, int number) { return b.number < number; });
  if (at != buckets_.end() && at->number == bucket)
    at->runs += runs;
  else
    buckets_.insert(at, {bucket, runs});
}

int64_t Histogram::quantile(double fraction) const {
  auto wanted = static_cast<int64_t>(std::ceil(fraction * static_cast<double>(runs_)));
  for (const auto& [bucket, runs] : buckets_) {
    wanted -= runs;
    if (wanted <= 0) return middle_of(bucket);
  }
  return buckets_.empty() ? 0 : middle_of(buckets_.back().number);
}

namespace {

// A time that is not known adds nothing, and is neither the shortest nor the longest.
Total total_of(const RunRow& run) {
  const bool is_known = run.has_duration();
  return {.runs = 1,
          .sum_us = is_known ? static_cast<double>(run.duration_us) : 0,
          .min_us = is_known ? run.duration_us : INT64_MAX,
          .max_us = is_known ? run.duration_us : 0,
          .first_us = run.started_us,
          .first_session = run.session,
          .last_us = run.started_us,
          .last_session = run.session};
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
  if (outcome == OutcomeKind::skipped || !run.has_duration()) return;
  durations[{run.test, is_failing(outcome)}].add(Histogram::bucket_of(run.duration_us), 1);
}

Histogram Totals::durations_of(int64_t test, bool failing) const {
  const auto found = durations.find({test, failing});
  return found != durations.end() ? found->second : Histogram();
}

int64_t sane_count(int64_t count) {
  return std::clamp<int64_t>(count, 0, int64_t{1} << 40);
}

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

void leave_out(int64_t unknown, DurationSummary& durations) {
  const int64_t known = durations.runs - unknown;
  if (unknown == 0) return;
  if (known <= 0) return (void)(durations = {});
  durations.mean = duration_of(static_cast<double>(durations.mean.count()) *
                               static_cast<double>(durations.runs) / static_cast<double>(known));
  durations.runs = known;
}

void set_quantiles(MeasuredDurations::Known& measured, DurationSummary& durations) {
  leave_out(measured.unknown, durations);
  std::vector<int64_t>& values = measured.values;
  if (values.empty()) return;
  durations.median = quantile(values, 0.5);
  durations.p95 = quantile(values, 0.95);
}

void set_quantiles(const Histogram& histogram, DurationSummary& durations) {
  leave_out(std::max<int64_t>(0, durations.runs - histogram.runs()), durations);
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
  if (total.runs == 0 || total.min_us > total.max_us) return {};
  DurationSummary durations;
  durations.runs = total.runs;
  durations.min = duration_of(static_cast<double>(total.min_us));
  durations.max = duration_of(static_cast<double>(total.max_us));
  durations.mean = duration_of(total.sum_us / static_cast<double>(total.runs));
  return durations;
}

}  // namespace

TestSummary summary_of(const TestId& id, const Totals& totals, int64_t test) {
  Total all, passing, failing, skipped;
  for (const auto& [key, total] : totals.of_test(test)) {
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
  return summary;
}

void MeasuredDurations::add(int64_t outcome_code, int64_t duration_us) {
  const OutcomeKind outcome = outcome_from_code(outcome_code);
  if (outcome == OutcomeKind::skipped) return;
  Known& measured = is_failing(outcome) ? failures : passes;
  if (duration_us < 0)
    ++measured.unknown;
  else
    measured.values.push_back(duration_us);
}

void set_exact_quantiles(MeasuredDurations durations, TestSummary& summary) {
  set_quantiles(durations.passes, summary.pass_durations);
  set_quantiles(durations.failures, summary.fail_durations);
}

void set_approximate_quantiles(const Histogram& passes, const Histogram& failures,
                               TestSummary& summary) {
  set_quantiles(passes, summary.pass_durations);
  set_quantiles(failures, summary.fail_durations);
}

std::vector<std::pair<TotalKey, Total>> frequent_failures(const Totals& totals, int64_t test,
                                                          TestSummary& summary) {
  std::vector<std::pair<TotalKey, Total>> found;
  for (const auto& [key, total] : totals.of_test(test))
    if (is_failing(outcome_from_code(key.outcome))) found.emplace_back(key, total);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second.runs > b.second.runs; });
  summary.signature_count = static_cast<int64_t>(found.size());
  found.resize(std::min(found.size(), most_signatures));
  return found;
}

SignatureSummary signature_summary_of(const TotalKey& key, const Total& total) {
  SignatureSummary summary;
  summary.outcome = outcome_from_code(key.outcome);
  summary.runs = total.runs;
  summary.first = to_time(total.first_us);
  summary.last = to_time(total.last_us);
  return summary;
}

double sure_failure_rate(int64_t failures, int64_t runs) {
  return failures > 0 ? score_interval(failures, runs).low : 0;
}

SplitRuns::SplitRuns(std::span<const RunRecord> runs) : runs_(runs) {
  plain_ = static_cast<size_t>(std::ranges::count_if(runs, is_plain));
  if (std::ranges::is_partitioned(runs, is_plain)) return;
  sorted_.assign(runs.begin(), runs.end());
  std::ranges::stable_partition(sorted_, is_plain);
  runs_ = sorted_;
}

bool LastFailuresReader::take(const SessionTests& session) {
  if (session.tests.empty()) return true;  // stopped before its first run was over
  if (target_.empty()) target_ = session.tests.front().test.target;
  if (session.tests.front().test.target != target_) return true;
  if (!found_) found_ = {session.started, session.command_line, session.finished, target_, {}};
  for (const SessionTests::Ran& ran : session.tests)
    if (seen_.insert(ran.test).second && ran.failed) found_->failed.push_back(ran.test);
  return !session.finished;
}

}  // namespace unflake
