#include "store/totals.h"

#include <algorithm>
#include <bit>
#include <cmath>

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

}  // namespace unflake
