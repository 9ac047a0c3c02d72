#include "search/reproduce/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Wanted wanted_at(int line, const std::string& function = "") {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = "/elsewhere/queue_test.cc";
  failure.line = line;
  failure.function = function;
  return {signature_of(failure), failure};
}

TraceBuilder two_threads() {
  return TraceBuilder().thread("main").thread("queue.cc:31#1", "main", 1, 90);
}

TracedStack stack_of(const std::vector<std::string>& innermost_first) {
  TracedStack stack;
  for (const std::string& function : innermost_first)
    stack.frames.push_back({no_index, 0, {{function, "/src/queue_test.cc", 1, 0, false}}});
  return stack;
}

TEST(FailurePoint, Is_where_the_watched_line_was_reached) {
  const Trace trace = two_threads()
                          .call("main", "a.cc:1:sched_yield", 1, 2)
                          .in("Test", "/src/queue_test.cc", 40)
                          .call("queue.cc:31#1", "queue_test.cc:40", 7, 7)
                          .call("main", "a.cc:2:sched_yield", 20, 21)
                          .trace();
  const FailurePoint point = find_failure_point(trace, wanted_at(40));
  EXPECT_EQ(point.thread, 1u);
  EXPECT_EQ(point.at, 7ms);
  EXPECT_EQ(point.how, "queue.cc:31#1 reaches queue_test.cc:40");
}

TEST(FailurePoint, Is_the_last_time_that_the_line_was_reached) {
  const Trace trace = two_threads()
                          .call("main", "queue_test.cc:40", 3, 3)
                          .call("queue.cc:31#1", "queue_test.cc:40", 8, 8)
                          .call("main", "queue_test.cc:40", 5, 5)
                          .trace();
  EXPECT_EQ(find_failure_point(trace, wanted_at(40)).at, 8ms);
}

TEST(FailurePoint, Is_not_a_line_of_that_number_in_another_file) {
  const Trace trace = two_threads().call("main", "other_test.cc:40", 3, 3).trace();
  EXPECT_EQ(find_failure_point(trace, wanted_at(40)).thread, no_index);
}

TEST(FailurePoint, Is_else_the_end_of_the_last_call_from_the_line) {
  const Trace trace = two_threads()
                          .call("main", "a.cc:1:sched_yield", 1, 2)
                          .in("Test", "/src/queue_test.cc", 40)
                          .call("main", "a.cc:1:sched_yield", 4, 6)
                          .in("Test", "/src/queue_test.cc", 40)
                          .call("main", "a.cc:2:sched_yield", 8, 9)
                          .in("Test", "/src/queue_test.cc", 41)
                          .trace();
  const FailurePoint point = find_failure_point(trace, wanted_at(40, "Test"));
  EXPECT_EQ(point.thread, 0u);
  EXPECT_EQ(point.at, 6ms);
  EXPECT_THAT(point.how, HasSubstr("line"));
}

TEST(FailurePoint, Is_else_the_end_of_the_last_call_from_the_function) {
  const Trace trace = two_threads()
                          .call("main", "a.cc:1:sched_yield", 1, 2)
                          .in("Test", "/src/queue_test.cc", 38)
                          .call("main", "a.cc:1:sched_yield", 4, 6)
                          .in("~Fixture", "/src/queue_test.cc", 12)
                          .trace();
  const FailurePoint point = find_failure_point(trace, wanted_at(40, "Test"));
  EXPECT_EQ(point.at, 2ms);
  EXPECT_THAT(point.how, HasSubstr("function"));
}

TEST(FailurePoint, Is_else_the_call_whose_stack_begins_most_like_that_of_the_failure) {
  Trace trace = two_threads()
                    .call("main", "a.cc:1:sched_yield", 1, 2)
                    .call("main", "a.cc:2:sched_yield", 3, 4)
                    .call("main", "a.cc:3:sched_yield", 5, 6)
                    .trace();
  trace.stacks = {stack_of({"push", "set_up", "run", "main"}),
                  stack_of({"pop", "check", "run", "main"}),
                  stack_of({"pop", "tear_down", "run", "main"})};
  for (uint32_t i = 0; i < 3; ++i) trace.calls[i].stack = i;
  TracedFailure recorded;
  recorded.stack = stack_of({"fail", "check", "run", "main"});
  const FailurePoint point = find_failure_point(trace, Wanted(), &recorded);
  EXPECT_EQ(point.at, 4ms);
  EXPECT_THAT(point.how, HasSubstr("stack"));
}

TEST(FailurePoint, Is_the_last_of_calls_that_are_equally_alike) {
  Trace trace = two_threads()
                    .call("main", "a.cc:1:sched_yield", 1, 2)
                    .call("main", "a.cc:2:sched_yield", 3, 4)
                    .trace();
  trace.stacks = {stack_of({"pop", "check", "main"})};
  for (TracedCall& call : trace.calls) call.stack = 0;
  TracedFailure recorded;
  recorded.stack = stack_of({"fail", "check", "main"});
  EXPECT_EQ(find_failure_point(trace, Wanted(), &recorded).at, 4ms);
}

TEST(FailurePoint, Is_not_known_when_no_stack_is_half_like_that_of_the_failure) {
  Trace trace = two_threads().call("main", "a.cc:1:sched_yield", 1, 2).trace();
  trace.stacks = {stack_of({"pop", "other", "elsewhere", "main"})};
  trace.calls[0].stack = 0;
  TracedFailure recorded;
  recorded.stack = stack_of({"fail", "check", "run", "main"});
  EXPECT_EQ(find_failure_point(trace, Wanted(), &recorded).thread, no_index);
}

TEST(FailurePoint, Is_the_end_of_the_run_when_nothing_is_known) {
  const Trace trace = two_threads().call("main", "a.cc:1:sched_yield", 1, 2).trace();
  const FailurePoint point = find_failure_point(trace, Wanted());
  EXPECT_EQ(point.thread, no_index);
  EXPECT_EQ(point.at, 90ms) << "when the last thread ended";
  EXPECT_THAT(point.how, HasSubstr("not known"));
}

TEST(FailurePoint, Is_found_in_a_trace_whose_numbers_refer_to_nothing) {
  Trace trace = two_threads().call("main", "queue_test.cc:40", 3, 3).trace();
  trace.calls.push_back(trace.calls.front());
  trace.calls.front().thread = 99;
  trace.calls.front().stack = 99;
  trace.calls.push_back(trace.calls.back());
  trace.calls.back().site = 99;
  TracedFailure recorded;
  EXPECT_EQ(find_failure_point(trace, wanted_at(40), &recorded).thread, 0u);
}

}  // namespace
}  // namespace unflake
