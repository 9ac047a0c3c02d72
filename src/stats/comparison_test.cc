#include "stats/rates.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <utility>

namespace unflake {
namespace {

TEST(FisherMoreOften, Agrees_with_values_known_from_counting) {
  EXPECT_NEAR(fisher_more_often(5, 5, 0, 5), 1 / 252.0, 1e-15);
  EXPECT_NEAR(fisher_more_often(3, 5, 0, 5), 10 / 120.0, 1e-14);
  EXPECT_NEAR(fisher_more_often(5, 5, 2, 5), 21 / 252.0, 1e-14);
  EXPECT_NEAR(fisher_more_often(3, 4, 1, 4), 17 / 70.0, 1e-14);
  EXPECT_NEAR(fisher_more_often(1, 1, 0, 1), 0.5, 1e-15);
}

// Every way to deal the hits out over all runs, those of a being the first ones.
double share_of_deals_with_as_many(int hits_a, int runs_a, int hits_b, int runs_b) {
  const unsigned of_a = (1U << runs_a) - 1;
  int all = 0, as_many = 0;
  for (unsigned deal = 0; deal < 1U << (runs_a + runs_b); ++deal) {
    if (std::popcount(deal) != hits_a + hits_b) continue;
    ++all;
    as_many += std::popcount(deal & of_a) >= hits_a;
  }
  return static_cast<double>(as_many) / all;
}

TEST(FisherMoreOften, Is_the_share_of_deals_that_give_a_as_many_hits) {
  for (int runs_a = 1; runs_a <= 6; ++runs_a)
    for (int runs_b = 1; runs_b <= 5; ++runs_b)
      for (int hits_a = 0; hits_a <= runs_a; ++hits_a)
        for (int hits_b = 0; hits_b <= runs_b; ++hits_b)
          EXPECT_NEAR(fisher_more_often(hits_a, runs_a, hits_b, runs_b),
                      share_of_deals_with_as_many(hits_a, runs_a, hits_b, runs_b), 1e-13)
              << hits_a << "/" << runs_a << " against " << hits_b << "/" << runs_b;
}

TEST(FisherMoreOften, Says_nothing_without_runs_of_both) {
  EXPECT_EQ(fisher_more_often(0, 0, 3, 5), 1.0);
  EXPECT_EQ(fisher_more_often(5, 5, 0, 0), 1.0);
  EXPECT_EQ(fisher_more_often(0, 0, 0, 0), 1.0);
}

TEST(FisherMoreOften, Says_nothing_when_all_or_none_hit) {
  EXPECT_EQ(fisher_more_often(0, 5, 0, 9), 1.0);
  EXPECT_EQ(fisher_more_often(5, 5, 9, 9), 1.0);
}

TEST(FisherMoreOften, Bounds_counts_that_make_no_sense) {
  EXPECT_EQ(fisher_more_often(9, 5, -2, 5), fisher_more_often(5, 5, 0, 5));
  EXPECT_EQ(fisher_more_often(2, -5, 1, 5), 1.0);
}

TEST(FisherMoreOften, Falls_with_every_hit_of_a_and_rises_with_every_hit_of_b) {
  for (const auto& [runs_a, runs_b] : {std::pair{7, 30}, {40, 9}, {100, 100}}) {
    for (int hits_b = 0; hits_b <= runs_b; ++hits_b)
      for (int hits_a = 1; hits_a <= runs_a; ++hits_a)
        EXPECT_LE(fisher_more_often(hits_a, runs_a, hits_b, runs_b),
                  fisher_more_often(hits_a - 1, runs_a, hits_b, runs_b) + 1e-12);
    for (int hits_a = 0; hits_a <= runs_a; ++hits_a)
      for (int hits_b = 1; hits_b <= runs_b; ++hits_b)
        EXPECT_GE(fisher_more_often(hits_a, runs_a, hits_b, runs_b) + 1e-12,
                  fisher_more_often(hits_a, runs_a, hits_b - 1, runs_b));
  }
}

// Either a has at least this many hits or b has more than it would then have.
TEST(FisherMoreOften, Shares_the_whole_with_the_opposite_question) {
  for (int hits_a = 0; hits_a < 60; ++hits_a)
    EXPECT_NEAR(fisher_more_often(hits_a + 1, 60, 29, 80) + fisher_more_often(30, 80, hits_a, 60),
                1.0, 1e-11);
}

TEST(FisherMoreOften, Is_the_same_when_misses_of_b_are_asked_for_instead) {
  for (int hits_a = 0; hits_a <= 20; ++hits_a)
    EXPECT_NEAR(fisher_more_often(hits_a, 20, 11, 33), fisher_more_often(22, 33, 20 - hits_a, 20),
                1e-12);
}

// The normal distribution is known to describe counts of this size.
TEST(FisherMoreOften, Holds_for_a_million_runs) {
  const int64_t runs = 1'000'000;
  for (const int64_t more : {-1000, 1, 1000, 2000}) {
    const double deviation = std::sqrt(0.25 * 2 * runs);
    const double z = (static_cast<double>(more) - 1) / deviation;
    EXPECT_NEAR(fisher_more_often(500'000 + more, runs, 500'000, runs),
                std::erfc(z / std::sqrt(2.0)) / 2, 1e-5)
        << more;
  }
}

TEST(FisherMoreOften, Tells_how_small_a_very_small_chance_is) {
  const double p = fisher_more_often(100, 100, 0, 100);  // one of 200 over 100
  EXPECT_NEAR(std::log10(p), -58.9569, 1e-3);
  EXPECT_GE(fisher_more_often(1'000'000, 1'000'000, 0, 1'000'000), 0.0);
}

TEST(Misses_until_less_often, Is_the_least_number_that_shows_it) {
  const auto more = misses_until_less_often(10, 100, 0, 5, 0.05);
  ASSERT_TRUE(more);
  EXPECT_LE(fisher_more_often(10, 100, 0, 5 + *more), 0.05);
  EXPECT_GT(fisher_more_often(10, 100, 0, 5 + *more - 1), 0.05);
}

TEST(Misses_until_less_often, Are_none_when_it_is_shown_already) {
  EXPECT_EQ(misses_until_less_often(50, 100, 0, 100, 0.05), 0);
}

TEST(Misses_until_less_often, No_number_helps_when_there_was_no_hit) {
  EXPECT_FALSE(misses_until_less_often(0, 100, 0, 100, 0.05));
}

TEST(Comparison, Sees_a_difference_in_either_direction) {
  EXPECT_LT(fisher_differs(20, 20, 0, 20), 1e-6);
  EXPECT_DOUBLE_EQ(fisher_differs(20, 20, 0, 20), fisher_differs(0, 20, 20, 20));
  EXPECT_EQ(fisher_differs(5, 25, 12, 60), 1);
  EXPECT_EQ(fisher_differs(0, 0, 12, 60), 1);
}

TEST(MiddleDifference, Is_the_median_of_all_averages) {
  EXPECT_DOUBLE_EQ(middle_difference({1, 2, 3}).estimate, 2);
  EXPECT_DOUBLE_EQ(middle_difference({0, 10}).estimate, 5);
  EXPECT_DOUBLE_EQ(middle_difference({}).estimate, 0);
}

TEST(MiddleDifference, An_outlier_does_not_move_it) {
  std::vector<double> differences(20, 1.0);
  differences[0] = 1e6;
  const MiddleDifference middle = middle_difference(differences);
  EXPECT_DOUBLE_EQ(middle.estimate, 1);
  EXPECT_DOUBLE_EQ(middle.interval.low, 1);
  EXPECT_DOUBLE_EQ(middle.interval.high, 1);
}

// Wilcoxon's tables for ten values: the ninth of the 55 averages from either end.
TEST(MiddleDifference, The_interval_is_that_of_signed_ranks) {
  const MiddleDifference middle = middle_difference({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_DOUBLE_EQ(middle.estimate, 5.5);
  EXPECT_DOUBLE_EQ(middle.interval.low, 3);
  EXPECT_DOUBLE_EQ(middle.interval.high, 8);
}

}  // namespace
}  // namespace unflake
