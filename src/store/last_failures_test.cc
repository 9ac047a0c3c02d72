#include "store/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SessionTests session(std::string command_line, bool finished,
                     std::vector<SessionTests::Ran> tests = {}) {
  return {TimePoint(), std::move(command_line), finished, std::move(tests)};
}

SessionTests::Ran ran(const std::string& name, bool failed, const std::string& target = "suite") {
  return {{target, name}, failed};
}

std::optional<LastFailures> read(const std::vector<SessionTests>& newest_first,
                                 const std::string& target = "") {
  LastFailuresReader reader(target);
  for (const SessionTests& one : newest_first)
    if (!reader.take(one)) break;
  return reader.result();
}

std::vector<std::string> names(const std::optional<LastFailures>& failures) {
  std::vector<std::string> names;
  for (const TestId& test : failures.value_or(LastFailures()).failed) names.push_back(test.name);
  return names;
}

TEST(LastFailures, Come_from_the_last_session_alone_when_it_is_complete) {
  const auto found = read({session("second", true, {ran("a", true), ran("b", false)}),
                           session("first", true, {ran("b", true), ran("c", true)})});
  EXPECT_THAT(names(found), ElementsAre("a"));
  EXPECT_EQ(found->command_line, "second");
  EXPECT_TRUE(found->finished);
}

TEST(LastFailures, Of_tests_that_a_stopped_session_did_not_come_to_come_from_before_it) {
  const auto found =
      read({session("third", false, {ran("a", false)}), session("second", false, {ran("b", true)}),
            session("first", true, {ran("a", true), ran("b", false), ran("c", true)}),
            session("older", true, {ran("d", true)})});
  EXPECT_THAT(names(found), ElementsAre("b", "c"));
  EXPECT_EQ(found->command_line, "third");
  EXPECT_FALSE(found->finished);
}

TEST(LastFailures, Skip_sessions_without_runs) {
  EXPECT_THAT(names(read({session("killed", false), session("first", true, {ran("a", true)})})),
              ElementsAre("a"));
  EXPECT_FALSE(read({session("killed", false)}));
}

TEST(LastFailures, Are_of_one_target) {
  const std::vector<SessionTests> sessions{session("second", false, {ran("a", false, "new")}),
                                           session("first", true, {ran("b", true, "old")}),
                                           session("older", true, {ran("c", true, "new")})};
  EXPECT_THAT(names(read(sessions)), ElementsAre("c"));
  EXPECT_THAT(names(read(sessions, "old")), ElementsAre("b"));
  EXPECT_FALSE(read(sessions, "none"));
}

TEST(LastFailures, May_be_none) {
  const auto found = read({session("all pass", true, {ran("a", false)})});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->failed, IsEmpty());
}

}  // namespace
}  // namespace unflake
