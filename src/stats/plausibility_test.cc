#include "stats/plausibility.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;

Plausibility judged(Duration lateness, const MachineLateness& seen = {}) {
  return plausibility_of(lateness, limits_of(seen));
}

TEST(Plausibility, Calls_milliseconds_a_flaw_hundreds_a_risk_and_seconds_a_margin) {
  EXPECT_EQ(judged(5ms), Plausibility::flaw);
  EXPECT_EQ(judged(300ms), Plausibility::risk);
  EXPECT_EQ(judged(4s), Plausibility::margin);
}

TEST(Plausibility, Expects_more_of_a_machine_that_was_seen_to_be_late) {
  EXPECT_EQ(judged(120ms), Plausibility::risk);
  EXPECT_EQ(judged(120ms, {1ms, 80ms}), Plausibility::flaw);
  EXPECT_EQ(judged(120ms, {80ms, 1ms}), Plausibility::flaw);
  EXPECT_EQ(judged(1500ms), Plausibility::margin);
  EXPECT_EQ(judged(1500ms, {1ms, 200ms}), Plausibility::risk);
}

TEST(Plausibility, Does_not_trust_a_quiet_machine_nor_one_that_hangs) {
  EXPECT_EQ(judged(50ms, {10us, 20us}), Plausibility::flaw);
  EXPECT_EQ(judged(1s, {10us, 20us}), Plausibility::risk);
  EXPECT_EQ(judged(600ms, {30s, 500h}), Plausibility::risk);
  EXPECT_EQ(judged(4s, {30s, 500h}), Plausibility::margin);
}

TEST(Plausibility, Never_takes_more_lateness_for_less_of_an_exception) {
  for (const Duration seen : {0ms, 3ms, 40ms, 200ms, 900ms, 10000ms})
    for (Duration lateness = 1ms; lateness < 20s; lateness = lateness * 5 / 4)
      EXPECT_LE(judged(lateness, {0ms, seen}), judged(lateness * 5 / 4, {0ms, seen}));
}

}  // namespace
}  // namespace unflake
