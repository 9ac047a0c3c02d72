#include "agent/hooks/time_values.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(AgentTimes, A_short_time_does_not_become_none) {
  EXPECT_EQ(agent::to_us(750), 1);
  EXPECT_EQ(agent::to_us(1000), 1);
  EXPECT_EQ(agent::to_timeval(1).tv_usec, 1);
  EXPECT_EQ(agent::to_ms(1), 1);
}

TEST(AgentTimes, No_time_stays_none) {
  EXPECT_EQ(agent::to_us(0), 0);
  EXPECT_EQ(agent::to_timeval(0).tv_usec, 0);
  EXPECT_EQ(agent::to_ms(0), 0);
}

TEST(AgentTimes, Microseconds_that_are_rounded_up_to_a_second_are_one) {
  const timeval time = agent::to_timeval(1'999'999'001);
  EXPECT_EQ(time.tv_sec, 2);
  EXPECT_EQ(time.tv_usec, 0);
}

}  // namespace
}  // namespace unflake
