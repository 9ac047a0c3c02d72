#pragma once

#include <cstdint>
#include <map>

namespace unflake {

// Counts of durations on a logarithmic scale: 32 buckets for each power of two, so that a quantile
// is at most 1.6 % off, from a microsecond to a million years.
class Histogram {
 public:
  static int bucket_of(int64_t microseconds);
  static int64_t middle_of(int bucket);

  void add(int bucket, int64_t runs);
  int64_t quantile(double fraction) const;  // 0 when empty
  const std::map<int, int64_t>& buckets() const { return buckets_; }

 private:
  std::map<int, int64_t> buckets_;
  int64_t runs_ = 0;
};

}  // namespace unflake
