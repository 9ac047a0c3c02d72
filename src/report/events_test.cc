#include "report/events.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Verdict, Says_what_all_runs_of_a_test_say_together) {
  EXPECT_EQ(verdict_of({.passes = 2, .failures = 1, .skips = 0}), Verdict::flaky);
  EXPECT_EQ(verdict_of({.passes = 0, .failures = 3, .skips = 0}), Verdict::failed);
  EXPECT_EQ(verdict_of({.passes = 0, .failures = 1, .skips = 1}), Verdict::failed);
  EXPECT_EQ(verdict_of({.passes = 1, .failures = 0, .skips = 1}), Verdict::passed);
  EXPECT_EQ(verdict_of({.passes = 0, .failures = 0, .skips = 2}), Verdict::skipped);
  EXPECT_EQ(verdict_of({}), Verdict::not_run);
}

}  // namespace
}  // namespace unflake
