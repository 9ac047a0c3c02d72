#include "stats/rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace unflake {
namespace {

void expect_interval(int64_t hits, int64_t trials, double low, double high) {
  const Interval interval = exact_interval(hits, trials);
  EXPECT_NEAR(interval.low, low, 5e-5) << hits << " of " << trials;
  EXPECT_NEAR(interval.high, high, 5e-5) << hits << " of " << trials;
}

TEST(ExactInterval, Agrees_with_published_values) {
  expect_interval(3, 10, 0.0667, 0.6525);
  expect_interval(0, 100, 0.0, 0.0362);
  expect_interval(5, 5, 0.4782, 1.0);
  expect_interval(1, 2, 0.0126, 0.9874);
  expect_interval(50, 100, 0.3983, 0.6017);
}

TEST(ExactInterval, Is_exact_at_both_ends) {
  EXPECT_EQ(exact_interval(0, 7).low, 0.0);
  EXPECT_EQ(exact_interval(7, 7).high, 1.0);
  EXPECT_NEAR(exact_interval(0, 7).high, 1 - std::pow(0.025, 1.0 / 7), 1e-12);
  EXPECT_NEAR(exact_interval(7, 7).low, std::pow(0.025, 1.0 / 7), 1e-12);
}

TEST(ExactInterval, Says_nothing_without_trials) {
  const Interval interval = exact_interval(0, 0);
  EXPECT_EQ(interval.low, 0.0);
  EXPECT_EQ(interval.high, 1.0);
}

TEST(ExactInterval, Mirrors_when_hits_and_misses_change_places) {
  for (const int64_t hits : {1, 17, 250, 499}) {
    const Interval one = exact_interval(hits, 500, 0.99);
    const Interval other = exact_interval(500 - hits, 500, 0.99);
    EXPECT_NEAR(one.low, 1 - other.high, 1e-11);
    EXPECT_NEAR(one.high, 1 - other.low, 1e-11);
  }
}

// The ends are known from the Poisson and the normal distribution when there are that many trials.
TEST(ExactInterval, Holds_for_a_billion_trials) {
  const Interval rare = exact_interval(1, 1'000'000'000);
  EXPECT_NEAR(rare.low * 1e9, 0.025318, 1e-5);
  EXPECT_NEAR(rare.high * 1e9, 5.571643, 1e-4);
  const Interval half = exact_interval(500'000'000, 1'000'000'000);
  EXPECT_NEAR((half.high - half.low) / 2, 1.959964 * 0.5 / std::sqrt(1e9), 1e-8);
}

TEST(ExactInterval, Puts_the_tails_where_the_binomial_distribution_has_them) {
  for (const int64_t trials : {4, 33, 1000, 100'000}) {
    for (const int64_t hits : {trials / 4, trials / 2, trials - 1}) {
      const Interval interval = exact_interval(hits, trials, 0.9);
      const auto k = static_cast<double>(hits), n = static_cast<double>(trials);
      EXPECT_NEAR(incomplete_beta(k, n - k + 1, interval.low), 0.05, 1e-9);
      EXPECT_NEAR(incomplete_beta(k + 1, n - k, interval.high), 0.95, 1e-9);
    }
  }
}

TEST(ExactInterval, Covers_the_truth_as_often_as_it_promises) {
  std::mt19937_64 random(20240607);
  for (const double truth : {0.01, 0.2, 0.5, 0.93}) {
    std::binomial_distribution<int64_t> runs(60, truth);
    int covered = 0;
    for (int experiment = 0; experiment < 4000; ++experiment) {
      const Interval interval = exact_interval(runs(random), 60);
      covered += interval.low <= truth && truth <= interval.high;
    }
    EXPECT_GE(covered, 4000 * 0.945) << truth;
  }
}

TEST(ExactInterval, Bounds_counts_that_make_no_sense) {
  EXPECT_EQ(exact_interval(-3, 10).low, 0.0);
  EXPECT_EQ(exact_interval(12, 10).high, 1.0);
}

TEST(ScoreInterval, Lies_close_to_the_exact_one) {
  EXPECT_NEAR(score_interval(3, 10).low, 0.1078, 5e-5);
  EXPECT_NEAR(score_interval(3, 10).high, 0.6032, 5e-5);
  EXPECT_NEAR(score_interval(100, 10'000).low, exact_interval(100, 10'000).low, 2e-4);
}

TEST(UpperBoundZeroFailures, Is_the_rule_of_three_made_exact) {
  EXPECT_NEAR(upper_bound_zero_failures(100), 0.02951, 1e-5);
  EXPECT_NEAR(upper_bound_zero_failures(1'000'000'000) * 1e9, 2.9957, 1e-4);
  EXPECT_EQ(upper_bound_zero_failures(0), 1.0);
}

}  // namespace
}  // namespace unflake
