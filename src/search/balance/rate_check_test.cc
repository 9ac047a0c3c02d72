#include "search/balance/balance_runs.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using SettingVerdict = TriedSetting::Verdict;

Outcome passing() {
  return {};
}

Outcome failing(const std::string& signature) {
  Outcome outcome;
  outcome.kind = OutcomeKind::fail;
  outcome.signature = signature;
  return outcome;
}

OwnFailures own(int failures, int runs) {
  OwnFailures own;
  for (int i = 0; i < runs; ++i) own.add(i < failures ? failing("own") : passing());
  return own;
}

int passes_until_decided(RateCheck& check) {
  int runs = 0;
  while (check.verdict() == SettingVerdict::undecided && runs < 10'000)
    check.add(passing()), ++runs;
  return runs;
}

TEST(RateCheck, Passes_alone_let_a_setting_hold) {
  const OwnFailures none = own(0, 10);
  RateCheck check(none, {});
  EXPECT_LE(passes_until_decided(check), 10);
  EXPECT_EQ(check.verdict(), SettingVerdict::holds);
}

TEST(RateCheck, Twice_the_failures_of_a_test_that_often_fails_are_refused) {
  const OwnFailures often = own(30, 100);
  RateCheck check(often, {.tolerated = 0.001, .refused = 0.02});
  EXPECT_LT(check.refused_rate(), 0.6);
  for (int i = 0; i < 1000 && check.verdict() == SettingVerdict::undecided; ++i)
    check.add(i % 5 < 3 ? failing("own") : passing());
  EXPECT_EQ(check.verdict(), SettingVerdict::fails);
}

TEST(RateCheck, A_skipped_run_is_no_better_than_one_that_failed) {
  const OwnFailures none = own(0, 10);
  RateCheck check(none, {});
  Outcome skipped;
  skipped.kind = OutcomeKind::skipped;
  for (int i = 0; i < 100; ++i) check.add(skipped);
  EXPECT_EQ(check.verdict(), SettingVerdict::fails);
}

TEST(RateCheck, A_rare_failure_takes_more_passes_to_exclude) {
  const OwnFailures none = own(0, 10);
  RateCheck coarse(none, {.refused = 0.5}), fine(none, {.refused = 0.02});
  EXPECT_GT(passes_until_decided(fine), 10 * passes_until_decided(coarse));
}

TEST(RateCheck, A_setting_that_always_fails_is_refused_at_once) {
  const OwnFailures none = own(0, 10);
  RateCheck check(none, {});
  check.add(failing("new"));
  EXPECT_EQ(check.verdict(), SettingVerdict::fails);
}

TEST(RateCheck, Failures_as_frequent_as_without_changes_are_accounted_for) {
  const OwnFailures often = own(30, 100);
  RateCheck check(often, {});
  for (int i = 0; i < 100 && check.verdict() == SettingVerdict::undecided; ++i)
    check.add(i % 10 < 3 ? failing("own") : passing());
  EXPECT_EQ(check.verdict(), SettingVerdict::holds);
}

TEST(RateCheck, More_failures_of_the_same_kind_are_too_many) {
  const OwnFailures often = own(10, 100);
  RateCheck check(often, {});
  for (int i = 0; i < 100 && check.verdict() == SettingVerdict::undecided; ++i)
    check.add(i % 10 < 9 ? failing("own") : passing());
  EXPECT_EQ(check.verdict(), SettingVerdict::fails);
}

TEST(RateCheck, A_new_kind_of_failure_is_too_much_even_where_the_test_often_fails) {
  const OwnFailures often = own(30, 100);
  RateCheck check(often, {});
  check.add(failing("new"));
  EXPECT_EQ(check.verdict(), SettingVerdict::fails);
}

TEST(RateCheck, Comes_to_an_end) {
  const OwnFailures often = own(50, 100);
  RateCheck check(often, {.refused = 0.02, .most_runs = 50});
  for (int i = 0; i < 50; ++i) check.add(i % 2 ? failing("own") : passing());
  EXPECT_NE(check.verdict(), SettingVerdict::undecided);
}

}  // namespace
}  // namespace unflake
