#include "stats/rates.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Percent, Keeps_two_digits_of_a_small_rate) {
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(percent(0.03), "3.0 %");
  EXPECT_EQ(percent(1), "100.0 %");
  EXPECT_EQ(percent(0.0062), "0.62 %");
  EXPECT_EQ(percent(1.0 / 1'000'000), "0.00010 %");
}

TEST(Percent_at_most, Is_rounded_up) {
  EXPECT_EQ(percent_at_most(0.01801), "1.9 %");
  EXPECT_EQ(percent_at_most(0.001001), "0.11 %");
  EXPECT_EQ(percent_at_most(1), "100.0 %");
}

TEST(RateText, Shows_the_exact_interval) {
  EXPECT_EQ(rate_text(3, 100), "3/100 runs failed (3.0 %, 95 % interval 0.62..8.5 %)");
  EXPECT_EQ(rate_text(5, 5), "5/5 runs failed (100.0 %, 95 % interval 47.8..100.0 %)");
}

TEST(RateText, Says_what_passes_promise_and_never_more) {
  EXPECT_EQ(rate_text(0, 100), "100/100 runs (failure rate below 3.0 % at 95 % confidence)");
  EXPECT_EQ(rate_text(0, 10'000),
            "10000/10000 runs (failure rate below 0.030 % at 95 % confidence)");
  EXPECT_EQ(rate_text(0, 1), "1/1 runs (failure rate below 95.0 % at 95 % confidence)");
}

TEST(RateText, Says_nothing_about_a_rate_without_runs) {
  EXPECT_EQ(rate_text(0, 0), "no run passed or failed");
}

}  // namespace
}  // namespace unflake
