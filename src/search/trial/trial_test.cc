#include "search/trial/trial_runner.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;

Failure line_57() {
  Failure failure;
  failure.file = "/home/ci/src/queue.cc";
  failure.line = 57;
  return failure;
}

TEST(Trials, A_line_is_named_in_the_usual_ways) {
  EXPECT_TRUE(names_line("src/queue.cc:57: check failed", line_57()));
  EXPECT_TRUE(names_line("queue.cc(57): error", line_57()));
  EXPECT_TRUE(names_line("Assertion failed in queue.cc on line 57", line_57()));
}

TEST(Trials, Another_line_that_begins_alike_is_not_the_one) {
  EXPECT_FALSE(names_line("queue.cc:571", line_57()));
  EXPECT_FALSE(names_line("queue.cc:5", line_57()));
  EXPECT_FALSE(names_line("other.cc:57", line_57()));
}

TEST(Trials, A_failure_without_a_file_is_named_nowhere) {
  Failure nothing;
  nothing.line = 57;
  EXPECT_FALSE(names_line(":57", nothing));
}

ExperimentResult aborted_in(const std::string& file, int line) {
  auto trace = std::make_shared<Trace>();
  TracedFailure failure;
  TracedFrame frame;
  frame.source.push_back({"check", file, line, 0, false});
  failure.stack.frames.push_back(frame);
  trace->failures.push_back(failure);
  ExperimentResult result;
  result.trace = trace;
  return result;
}

TEST(Trials, A_test_failed_where_its_stack_says) {
  EXPECT_TRUE(failed_at(aborted_in("/elsewhere/queue.cc", 57), line_57()));
  EXPECT_FALSE(failed_at(aborted_in("/elsewhere/queue.cc", 58), line_57()));
  EXPECT_FALSE(failed_at(ExperimentResult(), line_57()));
}

ExperimentResult timed_out(Duration duration, Duration added) {
  auto trace = std::make_shared<Trace>();
  trace->interventions.push_back({40, 40, 0, added});
  ExperimentResult result;
  result.outcome.kind = OutcomeKind::timeout;
  result.outcome.duration = duration;
  result.trace = trace;
  return result;
}

TEST(Trials, A_run_that_only_waited_for_its_delays_ran_into_delays) {
  EXPECT_TRUE(ran_into_delays(timed_out(3s, 2s)));
  EXPECT_FALSE(ran_into_delays(timed_out(3s, 200ms)));
}

}  // namespace
}  // namespace unflake
