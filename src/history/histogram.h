#pragma once

#include <cstdint>
#include <vector>

namespace unflake {

// Counts of durations on a logarithmic scale: 32 buckets for each power of two, so that a quantile
// is at most 1.6 % off, from a microsecond to a million years.
class Histogram {
 public:
  static int bucket_of(int64_t microseconds);
  static int64_t middle_of(int bucket);

  void add(int bucket, int64_t runs);
  int64_t quantile(double fraction) const;  // 0 when empty

  struct Bucket {
    int number = 0;
    int64_t runs = 0;
  };
  int64_t runs() const { return runs_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }  // in order

 private:
  std::vector<Bucket> buckets_;
  int64_t runs_ = 0;
};

}  // namespace unflake
