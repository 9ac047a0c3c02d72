#include "study/study.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<FixKind> kinds_of(std::string_view hunk, std::string_view path = "tests/a_test.cc") {
  CommitChange change;
  change.paths = {std::string(path)};
  change.diff = fmt::format(
      "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1,3 +1,3 @@ void "
      "f()\n{1}",
      path, hunk);
  return fix_kinds(change);
}

TEST(Fix_kind, A_larger_number_in_a_line_that_waits_is_a_longer_wait) {
  EXPECT_THAT(kinds_of("-  wait_for(100);\n+  wait_for(500);\n"),
              ElementsAre(FixKind::longer_wait));
  EXPECT_THAT(kinds_of("-constexpr auto timeout = 10s;\n+constexpr auto timeout = 60s;\n"),
              ElementsAre(FixKind::longer_wait));
  EXPECT_THAT(kinds_of("-TIMEOUT = 1_000\n+TIMEOUT = 2_500\n", "tests/test_a.py"),
              ElementsAre(FixKind::longer_wait));
}

TEST(Fix_kind, Units_of_time_are_compared_and_not_their_digits) {
  EXPECT_THAT(kinds_of("-  sleep_for(std::chrono::milliseconds(200));\n"
                       "+  sleep_for(std::chrono::seconds(2));\n"),
              ElementsAre(FixKind::longer_wait));
  EXPECT_THAT(kinds_of("-  sleep_for(900ms);\n+  sleep_for(1s);\n"),
              ElementsAre(FixKind::longer_wait));
  EXPECT_THAT(kinds_of("-  sleep_for(1s);\n+  sleep_for(900ms);\n"),
              ElementsAre(FixKind::hard_to_say));
}

TEST(Fix_kind, A_smaller_number_or_one_that_is_no_time_is_none) {
  EXPECT_THAT(kinds_of("-  wait_for(500);\n+  wait_for(100);\n"),
              ElementsAre(FixKind::hard_to_say));
  EXPECT_THAT(kinds_of("-  EXPECT_EQ(n, 3);\n+  EXPECT_EQ(n, 4);\n"),
              ElementsAre(FixKind::hard_to_say));
}

TEST(Fix_kind, A_pause_where_there_was_none_is_a_longer_wait) {
  EXPECT_THAT(kinds_of("+  usleep(1000);\n   check();\n"), ElementsAre(FixKind::longer_wait));
}

TEST(Fix_kind, A_pause_that_moved_is_none) {
  EXPECT_THAT(kinds_of("-  usleep(1000);\n   check();\n+  usleep(1000);\n"),
              ElementsAre(FixKind::hard_to_say));
}

TEST(Fix_kind, Waiting_for_an_event_in_place_of_a_pause_is_a_callback) {
  EXPECT_THAT(kinds_of("-  sleep(1);\n+  done.get_future().wait();\n"),
              ElementsAre(FixKind::callback));
  EXPECT_THAT(kinds_of("+  std::unique_lock lock(m);\n+  ready.notify_all();\n"),
              ElementsAre(FixKind::callback));
}

TEST(Fix_kind, A_loop_with_a_pause_is_polling) {
  EXPECT_THAT(kinds_of("-  sleep(1);\n+  while (!server.ready()) {\n+    usleep(100);\n+  }\n"),
              ElementsAre(FixKind::polling));
  EXPECT_THAT(
      kinds_of("+  for attempt in range(50):\n+    if ready(): break\n+    time.sleep(0.1)\n",
               "tests/test_a.py"),
      ElementsAre(FixKind::polling));
  EXPECT_THAT(kinds_of("-  CHECK(ready());\n+  CHECK_EVENTUALLY(ready());\n"),
              ElementsAre(FixKind::polling));
}

TEST(Fix_kind, A_diff_that_only_takes_code_away_removes) {
  EXPECT_THAT(kinds_of("-TEST(A, B) {\n-  check();\n-}\n"), ElementsAre(FixKind::removal));
  EXPECT_THAT(kinds_of("-  check();\n+  // checked elsewhere\n"), ElementsAre(FixKind::removal));
}

TEST(Fix_kind, A_disabled_test_is_removed) {
  EXPECT_THAT(kinds_of("-TEST(A, B) {\n+TEST(A, DISABLED_B) {\n"), ElementsAre(FixKind::removal));
}

TEST(Fix_kind, A_mock_in_place_of_the_real_thing_is_mocking) {
  EXPECT_THAT(kinds_of("-  Server server;\n+  MockServer server;\n"),
              ElementsAre(FixKind::mocking));
}

TEST(Fix_kind, A_fix_may_be_of_several_kinds) {
  EXPECT_THAT(kinds_of("-  wait(100);\n+  wait(300);\n+  FakeClock clock;\n"),
              UnorderedElementsAre(FixKind::longer_wait, FixKind::mocking));
}

TEST(Fix_kind, What_is_no_code_is_not_read) {
  EXPECT_THAT(kinds_of("-wait 100\n+wait 300\n", "docs/guide.md"),
              ElementsAre(FixKind::hard_to_say));
}

TEST(Fix_kind, Too_much_to_read_is_hard_to_say) {
  CommitChange change;
  change.diff = "+++ b/a.cc\n@@ @@\n+  usleep(1);\n";
  change.whole = false;
  EXPECT_THAT(fix_kinds(change), ElementsAre(FixKind::hard_to_say));
  change.whole = true;
  change.paths.assign(51, "a.cc");
  EXPECT_THAT(fix_kinds(change), ElementsAre(FixKind::hard_to_say));
}

TEST(Fix_kind, Any_bytes_are_read_without_harm) {
  for (const char* diff :
       {"", "@@", "+", "+++ ", "@@\n+\n-\n", "+++ b/a.c\n@@\n+1'_.9s 1.2.3\xff"}) {
    CommitChange change;
    change.diff = diff;
    EXPECT_FALSE(fix_kinds(change).empty()) << diff;
  }
}

}  // namespace
}  // namespace unflake
