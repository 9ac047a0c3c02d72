#include "report/terminal.h"

#include <gtest/gtest.h>

#include "golden/make_events.h"
#include "report/layout.h"

namespace unflake {
namespace {

using namespace golden;

struct LiveBarTest : ::testing::Test {
  StringSink sink;
  int width = 80;
  Progress progress;
  TestPtr push = make_test("server_test", "Server.Push");
  TestPtr pop = make_test("server_test", "Server.Pop");

  LiveBarTest() {
    SessionStarted session;
    session.tests = {push, pop};
    session.repeat = 350;
    progress.begin(session, 0s);
  }
  LiveBar bar() {
    return LiveBar(sink, true, [this] { return width; });
  }
};

TEST_F(LiveBarTest, Shows_progress_and_the_running_tests_longest_first) {
  progress.start({push, 1}, 1s);
  progress.start({pop, 1}, 2s);
  EXPECT_EQ(bar_text(progress, 3s, 90),
            "[3.00 s] 0/700 runs | server_test:Server.Push 2.00 s, server_test:Server.Pop 1.00 s");
}

TEST_F(LiveBarTest, Forgets_a_run_that_was_stopped_from_outside_without_counting_it) {
  progress.start({push, 1}, 1s);
  RunEnded cancelled = make_run(push, 1, OutcomeKind::crash, 1s);
  cancelled.result.process.end = ProcessResult::End::cancelled;
  progress.end(cancelled);
  EXPECT_EQ(bar_text(progress, 3s, 90), "[3.00 s] 0/700 runs");
}

TEST_F(LiveBarTest, Counts_the_tests_that_do_not_fit) {
  progress.start({push, 1}, 1s);
  progress.start({pop, 1}, 2s);
  EXPECT_EQ(bar_text(progress, 3s, 70), "[3.00 s] 0/700 runs | server_test:Server.Push 2.00 s, +1");
}

TEST_F(LiveBarTest, Shortens_the_only_test_rather_than_leave_it_out) {
  progress.start({push, 1}, 1s);
  EXPECT_EQ(bar_text(progress, 3s, 45), "[3.00 s] 0/700 runs | server_test:Ser… 2.00 s");
}

TEST_F(LiveBarTest, Never_is_wider_than_the_terminal) {
  const TestPtr wide = make_test("größe", "試験試験試験試験試験\ttab\x1b[31m");
  for (int i = 1; i <= 4; ++i) progress.start({wide, i}, 1s);
  for (size_t columns_there = 0; columns_there < 120; ++columns_there)
    EXPECT_LE(columns(bar_text(progress, 3s, columns_there)), columns_there);
}

TEST_F(LiveBarTest, Is_rewritten_in_place_with_one_write) {
  LiveBar live = bar();
  live.refresh(progress, 1s);
  ASSERT_EQ(sink.writes.size(), 1u);
  EXPECT_EQ(sink.writes[0], "\r[1.00 s] 0/700 runs\x1b[K");
}

TEST_F(LiveBarTest, Is_drawn_at_most_ten_times_a_second) {
  LiveBar live = bar();
  for (Duration now{}; now < 1s; now += 1ms) live.refresh(progress, now);
  EXPECT_EQ(sink.writes.size(), 10u);
}

TEST_F(LiveBarTest, Makes_room_for_a_line_and_comes_back_in_the_same_write) {
  LiveBar live = bar();
  live.refresh(progress, 1s);
  live.print("PASS\n");
  ASSERT_EQ(sink.writes.size(), 2u);
  EXPECT_EQ(sink.writes[1], "\r\x1b[KPASS\n[1.00 s] 0/700 runs");
}

TEST_F(LiveBarTest, Leaves_nothing_behind) {
  {
    LiveBar live = bar();
    live.refresh(progress, 1s);
  }
  EXPECT_EQ(sink.writes.back(), "\r\x1b[K");
}

TEST_F(LiveBarTest, Follows_the_width_of_the_window) {
  LiveBar live = bar();
  live.refresh(progress, 1s);
  width = 11;
  live.refresh(progress, 2s);
  EXPECT_EQ(sink.writes[1], "\r[2.00 s] …\x1b[K");
}

TEST_F(LiveBarTest, Writes_nothing_when_it_is_off) {
  LiveBar off(sink, false, [] { return 80; });
  off.refresh(progress, 1s);
  off.print("PASS\n");
  off.hide();
  EXPECT_EQ(sink.text, "PASS\n");
}

TEST_F(LiveBarTest, Knows_that_skipped_tests_make_no_runs) {
  progress.end(TestEnded{pop, Verdict::skipped, {}, "disabled"});
  EXPECT_EQ(progress.counts(), "0/350 runs");
}

}  // namespace
}  // namespace unflake
