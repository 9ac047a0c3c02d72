#include "history/histogram.h"

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

}  // namespace unflake
