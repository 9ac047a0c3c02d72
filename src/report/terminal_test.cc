#include "report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/make_events.h"

namespace unflake {
namespace {

using namespace golden;
using ::testing::HasSubstr;
using ::testing::Not;

struct TerminalTest : ::testing::Test {
  StringSink sink;
  Duration now{};
  TerminalOptions options;
  TestPtr push = make_test("server_test", "Server.Push");
  TestPtr pop = make_test("server_test", "Server.Pop");

  TerminalTest() {
    options.clock = [this] { return now; };
  }
  SessionStarted session(int repeat) {
    SessionStarted started;
    started.tests = {push, pop};
    started.repeat = repeat;
    return started;
  }
  RunEnded failing_push(int attempt, std::string signature = "aaaa") {
    return failing(push, attempt, assertion("server_test.cc", 42, "EXPECT_EQ(a, b)"), signature,
                   "what the test printed\n");
  }
};

size_t occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return count;
}

TEST_F(TerminalTest, Says_nothing_about_each_pass_of_a_repeated_test) {
  TerminalReport report(sink, options);
  report.on(session(1000));
  const size_t before = sink.text.size();
  for (int i = 1; i <= 1000; ++i) report.on(passing(push, i));
  EXPECT_EQ(sink.text.size(), before);
}

TEST_F(TerminalTest, Shows_the_output_once_for_every_different_failure_of_a_repeated_test) {
  TerminalReport report(sink, options);
  report.on(session(100));
  for (int i = 1; i <= 5; ++i) report.on(failing_push(i, "aaaa"));
  report.on(failing_push(6, "bbbb"));
  EXPECT_EQ(occurrences(sink.text, "| what the test printed"), 2u);
  for (int i = 1; i <= 6; ++i)
    EXPECT_THAT(sink.text, HasSubstr("RUN " + std::to_string(i) + " FAIL"));
}

TEST_F(TerminalTest, Shows_the_output_of_every_failing_try) {
  TerminalReport report(sink, options);
  report.on(session(1));
  RunEnded first = failing_push(1);
  first.will_retry = true;
  report.on(first);
  report.on(failing_push(2));
  EXPECT_EQ(occurrences(sink.text, "| what the test printed"), 2u);
}

TEST_F(TerminalTest, Bounds_the_output_of_a_failing_run) {
  options.output_lines = 3;
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(failing(push, 1, assertion("a.cc", 1, "x"), "aaaa", "1\n2\n3\n4\n5\n"));
  EXPECT_THAT(sink.text, HasSubstr("| (2 lines before these not shown)\n"));
  EXPECT_THAT(sink.text, Not(HasSubstr("| 2\n")));
}

TEST_F(TerminalTest, Tells_only_failures_and_the_summary_when_quiet) {
  options.verbosity = Verbosity::quiet;
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(passing(pop));
  report.on(TestEnded{pop, Verdict::passed, {.passes = 1, .failures = 0, .skips = 0}, ""});
  EXPECT_EQ(sink.text, "");
  report.on(failing_push(1));
  EXPECT_THAT(sink.text, HasSubstr("FAIL"));
}

TEST_F(TerminalTest, Tells_every_run_when_verbose) {
  options.verbosity = Verbosity::verbose;
  TerminalReport report(sink, options);
  report.on(session(10));
  report.on(RunStarted{push, 7});
  RunEnded run = passing(push, 7);
  set_output(run, "fine\n");
  report.on(run);
  EXPECT_THAT(sink.text, HasSubstr("RUN 7 START server_test:Server.Push\n"));
  EXPECT_THAT(sink.text, HasSubstr("RUN 7 PASS [12.3 ms] server_test:Server.Push\n"));
  EXPECT_THAT(sink.text, HasSubstr("| fine\n"));
}

TEST_F(TerminalTest, Prints_the_live_state_on_request) {
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(RunStarted{pop, 1});
  report.on(failing_push(1));
  report.on(TestEnded{push, Verdict::failed, {.passes = 0, .failures = 1, .skips = 0}, ""});
  sink.text.clear();
  now = 4s;
  report.on(StatusRequested{});
  EXPECT_EQ(sink.text,
            "       Status [ 4.00 s] 1/2 runs, 1 failure\n"
            "      running [ 4.00 s] server_test:Server.Pop\n"
            "         FAIL [15.2 ms] server_test:Server.Push\n"
            "              server_test.cc:42: EXPECT_EQ(a, b) [aaaa]\n");
}

TEST_F(TerminalTest, Knows_in_the_middle_of_repeats_what_failed_so_far) {
  TerminalReport report(sink, options);
  report.on(session(100));
  report.on(failing_push(1));
  report.on(failing_push(2));
  sink.text.clear();
  report.on(StatusRequested{});
  EXPECT_EQ(sink.text,
            "       Status [   0 us] 2/200 runs, 2 failures\n"
            "      failing server_test:Server.Push\n"
            "              2 x server_test.cc:42: EXPECT_EQ(a, b) [aaaa]\n");
}

TEST_F(TerminalTest, Says_why_a_test_was_skipped_whoever_knows_it) {
  TerminalReport report(sink, options);
  report.on(session(1));
  sink.text.clear();
  RunEnded run = make_run(push, 1, OutcomeKind::skipped, 1ms);
  run.result.outcome.reason = "no network";
  report.on(run);
  report.on(TestEnded{push, Verdict::skipped, {.passes = 0, .failures = 0, .skips = 1}, ""});
  report.on(TestEnded{pop, Verdict::skipped, {}, "disabled"});
  EXPECT_EQ(sink.text,
            "         SKIP server_test:Server.Push (no network)\n"
            "         SKIP server_test:Server.Pop (disabled)\n");
}

TEST_F(TerminalTest, Does_not_take_a_cancelled_run_for_a_failure) {
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(RunStarted{push, 1});
  sink.text.clear();
  RunEnded run = failing_push(1);
  run.result.process.end = ProcessResult::End::cancelled;
  report.on(run);
  report.on(StatusRequested{});
  EXPECT_EQ(sink.text, "       Status [   0 us] 0/2 runs\n");
}

TEST_F(TerminalTest, Lets_no_escape_sequence_of_a_test_through) {
  TerminalReport report(sink, options);
  const TestPtr evil = make_test("evil\x1b]0;title\x07",
                                 "name\r\nPASS \xc2\x9b"
                                 "2J");
  report.on(session(1));
  RunEnded run =
      failing(evil, 1, assertion("\x1b[H.cc", 1, "\x1b[2J"), "\x1b[1m", "\x1b[3J\x07\r\n");
  run.result.outcome.reason = "\x1b[5m";
  report.on(run);
  report.on(TestEnded{evil, Verdict::failed, {.passes = 0, .failures = 1, .skips = 0}, "\x1b["});
  report.on(TestEnded{evil, Verdict::skipped, {}, "\x1b[4m"});
  report.on(TestEnded{evil, Verdict::not_run, {}, "\x1b[4m"});
  report.on(Note{Note::Level::error, "\x1b[4m", "\x1b[4m"});
  report.on(SessionEnded{});
  for (const char forbidden : {'\x1b', '\r', '\x07'})
    EXPECT_EQ(sink.text.find(forbidden), std::string::npos);
  EXPECT_EQ(sink.text.find("\xc2\x9b"), std::string::npos);
}

TEST_F(TerminalTest, Repeats_at_the_end_what_was_warned_of_before_the_session) {
  TerminalReport report(sink, options);
  report.on(Note{Note::Level::warning, "the history is read-only", ""});
  report.on(session(1));
  sink.text.clear();
  report.on(SessionEnded{});
  EXPECT_THAT(sink.text, HasSubstr("warning the history is read-only\n"));
}

TEST_F(TerminalTest, Ends_the_live_bar_before_the_summary) {
  options.live = true;
  options.width = [] { return 80; };
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(Ticked{});
  sink.writes.clear();
  report.on(SessionEnded{});
  report.on(Ticked{});
  ASSERT_EQ(sink.writes.size(), 2u);
  EXPECT_EQ(sink.writes[0], "\r\x1b[K");
  EXPECT_THAT(sink.writes[1], Not(HasSubstr("\x1b")));
}

TEST_F(TerminalTest, Marks_a_run_that_goes_on_for_long) {
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(RunStarted{push, 1});
  report.on(RunSlow{push, 1, 60s});
  report.on(RunSlow{push, 2, 120s});
  EXPECT_THAT(sink.text, HasSubstr("         SLOW [> 60.0 s] server_test:Server.Push\n"
                                   "         SLOW [> 2m 00s] server_test:Server.Push (try 2)\n"));
}

TEST_F(TerminalTest, Marks_no_slow_run_when_it_is_quiet) {
  options.verbosity = Verbosity::quiet;
  TerminalReport report(sink, options);
  report.on(session(1));
  report.on(RunSlow{push, 1, 60s});
  EXPECT_THAT(sink.text, Not(HasSubstr("SLOW")));
}

TEST_F(TerminalTest, Shows_the_slowest_tests_at_the_end) {
  TerminalReport report(sink, options);
  report.on(session(1));
  SessionEnded ended;
  ended.slowest = {{push, 3500ms}, {pop, 12ms}};
  report.on(ended);
  EXPECT_THAT(sink.text, HasSubstr("      slowest [ 3.50 s] server_test:Server.Push\n"
                                   "              [12.0 ms] server_test:Server.Pop\n"));
}

}  // namespace
}  // namespace unflake
