#include "study/study.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using Kind = LifecycleStep::Kind;

TimePoint day_at(int number) {
  return TimePoint(std::chrono::days(20'000 + number));
}

Window known_until(int number) {
  return {TimePoint::min(), day_at(number)};
}

const TestId push{"server_test", "Server.Push"};

LifecycleStep step(Kind kind, int at, const std::string& signature = "aa") {
  LifecycleStep one;
  one.kind = kind;
  one.test = push;
  one.signature = signature;
  one.at = day_at(at);
  return one;
}

FlakyFailure failure(int first, int last, const std::string& signature = "aa") {
  FlakyFailure one;
  one.test = push;
  one.signature = signature;
  one.first = day_at(first);
  one.last = day_at(last);
  return one;
}

TEST(Episodes, A_failure_that_nobody_cared_for_is_open_since_it_was_seen) {
  const auto episodes = episodes_of({failure(3, 8)}, {});
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_EQ(episodes[0].opened, day_at(3));
  EXPECT_FALSE(episodes[0].closed);
  EXPECT_EQ(episodes[0].last_failure, day_at(8));
}

TEST(Episodes, Last_from_the_first_failure_until_the_first_claim) {
  LifecycleStep closed = step(Kind::report_closed, 9), lifted = step(Kind::lifted, 10);
  closed.url = "https://example.org/7";
  lifted.commit = "abc";
  const auto episodes = episodes_of({failure(3, 8)}, {lifted, step(Kind::quarantined, 4), closed});
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_EQ(episodes[0].opened, day_at(3));
  EXPECT_EQ(episodes[0].closed, day_at(9));
  EXPECT_EQ(episodes[0].commit, "abc");
  EXPECT_EQ(episodes[0].url, "https://example.org/7");
}

TEST(Episodes, An_expired_quarantine_claims_nothing) {
  const auto episodes = episodes_of({}, {step(Kind::quarantined, 1), step(Kind::expired, 31)});
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_FALSE(episodes[0].closed);
}

TEST(Episodes, Are_settled_until_it_fails_again) {
  const auto lifted = step(Kind::lifted, 9);
  EXPECT_FALSE(is_settled(episodes_of({failure(3, 8)}, {})[0]));
  EXPECT_TRUE(is_settled(episodes_of({failure(3, 8)}, {lifted})[0]));
  EXPECT_FALSE(is_settled(episodes_of({failure(3, 10)}, {lifted})[0]));
}

TEST(Episodes, What_comes_back_is_another_episode) {
  const auto episodes =
      episodes_of({failure(1, 30)}, {step(Kind::report_opened, 2), step(Kind::report_closed, 5),
                                     step(Kind::report_reopened, 20), step(Kind::lifted, 25)});
  ASSERT_EQ(episodes.size(), 2u);
  EXPECT_FALSE(episodes[0].came_back);
  EXPECT_TRUE(episodes[1].came_back);
  EXPECT_EQ(episodes[1].opened, day_at(20));
  EXPECT_EQ(episodes[1].closed, day_at(25));
}

TEST(Episodes, Other_failures_of_a_test_have_their_own) {
  const auto episodes =
      episodes_of({failure(1, 2, "aa"), failure(1, 2, "bb")}, {step(Kind::report_closed, 5, "aa")});
  ASSERT_EQ(episodes.size(), 2u);
  EXPECT_TRUE(episodes[0].closed);
  EXPECT_FALSE(episodes[1].closed);
}

TEST(Episodes, An_event_without_a_signature_is_about_all_failures_of_the_test) {
  const auto episodes =
      episodes_of({failure(1, 2, "aa"), failure(1, 2, "bb")}, {step(Kind::lifted, 5, "")});
  ASSERT_EQ(episodes.size(), 2u);
  EXPECT_EQ(episodes[0].closed, day_at(5));
  EXPECT_EQ(episodes[1].closed, day_at(5));
}

TEST(Claim_windows, Are_as_long_before_as_after) {
  const auto episodes = episodes_of({failure(1, 2)}, {step(Kind::lifted, 100)});
  const ClaimWindows windows = windows_of(episodes, 0, known_until(150));
  EXPECT_EQ(windows.before.from, day_at(50));
  EXPECT_EQ(windows.before.until, day_at(100));
  EXPECT_EQ(windows.after.from, day_at(100));
  EXPECT_EQ(windows.after.until, day_at(150));
}

TEST(Claim_windows, A_fix_of_yesterday_is_compared_with_a_month) {
  const auto episodes = episodes_of({failure(1, 2)}, {step(Kind::lifted, 100)});
  EXPECT_EQ(windows_of(episodes, 0, known_until(101)).before.from, day_at(70));
}

TEST(Claim_windows, End_at_the_other_claims_about_the_same_failure) {
  const auto episodes =
      episodes_of({failure(1, 2)},
                  {step(Kind::lifted, 10), step(Kind::quarantined, 12), step(Kind::lifted, 15)});
  EXPECT_EQ(windows_of(episodes, 0, known_until(90)).after.until, day_at(15));
  EXPECT_EQ(windows_of(episodes, 1, known_until(90)).before.from, day_at(10));
}

TEST(Claim_windows, Begin_where_nothing_has_been_forgotten) {
  const auto episodes = episodes_of({failure(1, 2)}, {step(Kind::lifted, 100)});
  EXPECT_EQ(windows_of(episodes, 0, {day_at(90), day_at(150)}).before.from, day_at(90));
  const ClaimWindows none = windows_of(episodes, 0, {day_at(120), day_at(150)});
  EXPECT_EQ(none.before.from, none.before.until);
  EXPECT_EQ(none.after.from, day_at(120));
}

}  // namespace
}  // namespace unflake
