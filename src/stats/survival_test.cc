#include "stats/distribution.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

// Weeks of remission under 6-mercaptopurine and under a placebo (Freireich 1963): the data on which
// every textbook shows the estimate.
std::vector<Lifetime> treated() {
  std::vector<Lifetime> all;
  for (const double weeks : {6, 6, 6, 7, 10, 13, 16, 22, 23}) all.push_back({weeks, true});
  for (const double weeks : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35})
    all.push_back({weeks, false});
  return all;
}

std::vector<Lifetime> placebo() {
  std::vector<Lifetime> all;
  for (const double weeks : {1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23})
    all.push_back({weeks, true});
  return all;
}

TEST(Survival, Shares_and_errors_are_those_of_the_textbook) {
  const Survival survival = survival_of(treated());
  const double shares[] = {0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482};
  const double errors[] = {0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346};
  ASSERT_EQ(survival.steps.size(), std::size(shares));
  for (size_t i = 0; i < std::size(shares); ++i) {
    EXPECT_NEAR(survival.steps[i].share, shares[i], 1e-4) << i;
    EXPECT_NEAR(survival.steps[i].error, errors[i], 1e-4) << i;
  }
  EXPECT_EQ(survival.ended, 9);
  EXPECT_EQ(survival.open, 12);
}

TEST(Survival, The_median_counts_what_has_not_ended) {
  const Survival survival = survival_of(treated());
  EXPECT_EQ(survival.median, 23);
  EXPECT_EQ(survival.median_low, 13);
  EXPECT_FALSE(survival.median_high);
}

TEST(Survival, When_all_has_ended_the_interval_is_closed) {
  const Survival survival = survival_of(placebo());
  EXPECT_EQ(survival.median, 8);
  EXPECT_EQ(survival.median_low, 4);
  EXPECT_EQ(survival.median_high, 11);
}

TEST(Survival, A_single_end_bounds_nothing) {
  const Survival survival = survival_of({{3, true}});
  EXPECT_EQ(survival.median, 3);
  EXPECT_FALSE(survival.median_low);
  EXPECT_FALSE(survival.median_high);
}

TEST(Survival, Without_an_end_there_is_no_median) {
  const Survival survival = survival_of({{3, false}, {5, false}});
  EXPECT_FALSE(survival.median);
  EXPECT_EQ(survival.open, 2);
  EXPECT_TRUE(survival_of({}).steps.empty());
}

}  // namespace
}  // namespace unflake
