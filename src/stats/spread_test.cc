#include "stats/distribution.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Spread, Quartiles_are_those_that_R_gives) {
  const Spread spread = spread_of({4, 1, 3, 2, 10});
  EXPECT_EQ(spread.count, 5);
  EXPECT_DOUBLE_EQ(spread.min, 1);
  EXPECT_DOUBLE_EQ(spread.lower_quartile, 2);
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.upper_quartile, 4);
  EXPECT_DOUBLE_EQ(spread.max, 10);
  EXPECT_DOUBLE_EQ(spread.mean, 4);
}

TEST(Spread, Quartiles_between_two_values_are_interpolated) {
  const Spread spread = spread_of({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(spread.lower_quartile, 1.75);
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_DOUBLE_EQ(spread.upper_quartile, 3.25);
}

TEST(Spread, One_value_is_all_of_its_own_quartiles) {
  const Spread spread = spread_of({7});
  EXPECT_DOUBLE_EQ(spread.lower_quartile, 7);
  EXPECT_DOUBLE_EQ(spread.upper_quartile, 7);
}

TEST(Spread, Of_nothing_there_is_none) {
  EXPECT_EQ(spread_of({}).count, 0);
}

}  // namespace
}  // namespace unflake
