#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <ranges>
#include <vector>
#include "store/run_row.h"

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

// What runs of one test with one outcome and one signature say together.
struct Total {
  int64_t runs = 0;
  double sum_us = 0;
  int64_t min_us = 0, max_us = 0;
  int64_t first_us = 0, first_session = 0;
  int64_t last_us = 0, last_session = 0;

  void merge(const Total& other);
};

struct TotalKey {
  int64_t test = 0, outcome = 0, signature = 0;
  auto operator<=>(const TotalKey&) const = default;
};

struct HistogramKey {
  int64_t test = 0;
  bool failing = false;
  auto operator<=>(const HistogramKey&) const = default;
};

struct Totals {
  std::map<TotalKey, Total> totals;
  std::map<HistogramKey, Histogram> durations;  // of passing and of failing runs

  void add(const RunRow& run);
  Histogram durations_of(int64_t test, bool failing) const;
  auto of_test(int64_t test) const {
    return std::ranges::subrange(totals.lower_bound({test, INT64_MIN, INT64_MIN}),
                                 totals.upper_bound({test, INT64_MAX, INT64_MAX}));
  }
};

// A damaged count, cut to what no sum of them overflows.
int64_t sane_count(int64_t count);

}  // namespace unflake
