#include "stats/rates.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Count, Adds_runs_and_hits) {
  Count count;
  count.add(true);
  count.add(false);
  count += Count{2, 8};
  EXPECT_EQ(count, (Count{3, 10}));
  EXPECT_EQ(count.misses(), 7);
  EXPECT_DOUBLE_EQ(count.rate(), 0.3);
}

TEST(Count, No_runs_say_nothing) {
  EXPECT_EQ(Count{}.rate(), 0);
  EXPECT_EQ(Count{}.interval().low, 0);
  EXPECT_EQ(Count{}.interval().high, 1);
}

TEST(Count, Has_the_exact_interval_of_its_rate) {
  const Interval interval = Count{3, 10}.interval();
  EXPECT_EQ(interval.low, exact_interval(3, 10).low);
  EXPECT_EQ(interval.high, exact_interval(3, 10).high);
}

TEST(Count, Two_of_them_are_compared) {
  EXPECT_EQ(fisher_more_often(Count{5, 5}, Count{0, 5}), fisher_more_often(5, 5, 0, 5));
  EXPECT_EQ(fisher_differs(Count{1, 5}, Count{4, 5}), fisher_differs(1, 5, 4, 5));
}

}  // namespace
}  // namespace unflake
