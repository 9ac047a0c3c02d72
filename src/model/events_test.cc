#include "model/events.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Tally, Counts_every_way_to_fail_as_a_failure) {
  Tally tally;
  for (const OutcomeKind kind : {OutcomeKind::pass, OutcomeKind::fail, OutcomeKind::crash,
                                 OutcomeKind::timeout, OutcomeKind::skipped}) {
    Outcome outcome;
    outcome.kind = kind;
    tally.add(outcome);
  }
  EXPECT_EQ(tally.passes, 1);
  EXPECT_EQ(tally.failures, 3);
  EXPECT_EQ(tally.skips, 1);
}

TEST(Tally, Adds_up) {
  Tally all{.passes = 1, .failures = 2, .skips = 3};
  all += {.passes = 10, .failures = 20, .skips = 30};
  EXPECT_EQ(all.passes, 11);
  EXPECT_EQ(all.failures, 22);
  EXPECT_EQ(all.skips, 33);
}

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
