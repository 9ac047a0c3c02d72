#include "store/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace unflake {
namespace {

TEST(Histogram, Keeps_a_duration_within_two_percent) {
  for (double value = 1; value < 9e18; value *= 1.017) {
    const auto exact = static_cast<int64_t>(value);
    const auto kept = static_cast<double>(Histogram::middle_of(Histogram::bucket_of(exact)));
    EXPECT_LE(std::abs(kept / static_cast<double>(exact) - 1), 0.016) << exact;
  }
}

TEST(Histogram, Orders_buckets_as_durations) {
  int last = -1;
  for (int64_t value = 0; value < 100'000; ++value) {
    const int bucket = Histogram::bucket_of(value);
    EXPECT_TRUE(bucket == last || bucket == last + 1) << value;
    last = bucket;
  }
}

TEST(Histogram, Survives_numbers_that_are_no_durations) {
  EXPECT_EQ(Histogram::bucket_of(-5), 0);
  EXPECT_EQ(Histogram::bucket_of(std::numeric_limits<int64_t>::min()), 0);
  EXPECT_GT(Histogram::middle_of(Histogram::bucket_of(std::numeric_limits<int64_t>::max())), 0);
  EXPECT_GT(Histogram::middle_of(std::numeric_limits<int>::max()), 0);
  EXPECT_EQ(Histogram::middle_of(-7), 0);
}

TEST(Histogram, Gives_the_value_at_a_fraction_of_all_counts) {
  Histogram histogram;
  for (int value = 1; value <= 20; ++value) histogram.add(Histogram::bucket_of(value), 5);
  EXPECT_EQ(histogram.quantile(0.5), 10);
  EXPECT_EQ(histogram.quantile(0.95), 19);
  EXPECT_EQ(Histogram().quantile(0.5), 0);
}

}  // namespace
}  // namespace unflake
