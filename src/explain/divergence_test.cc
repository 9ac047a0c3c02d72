#include "explain/call_order.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

TraceBuilder one_thread() {
  return TraceBuilder().thread("main");
}

std::optional<Duration> compare(const TraceBuilder& passing, const TraceBuilder& failing) {
  return divergence(passing.trace(), 0, failing.trace(), 0);
}

TEST(Divergence, Of_equal_runs_is_none) {
  TraceBuilder one = one_thread();
  one.call("main", "a.cc:1:read", 1, 2);
  EXPECT_EQ(compare(one, one), std::nullopt);
}

TEST(Divergence, Of_a_loop_that_goes_round_more_often_is_none) {
  TraceBuilder passing = one_thread(), failing = one_thread();
  passing.call("main", "a.cc:1:nanosleep", 1, 2);
  failing.call("main", "a.cc:1:nanosleep", 1, 2).call("main", "a.cc:1:nanosleep", 2, 3);
  EXPECT_EQ(compare(passing, failing), std::nullopt);
}

TEST(Divergence, Is_before_a_call_that_only_the_failing_run_makes) {
  TraceBuilder passing = one_thread(), failing = one_thread();
  passing.call("main", "a.cc:1:read", 1, 2);
  failing.call("main", "a.cc:1:read", 1, 2).call("main", "a.cc:5:write", 4, 5);
  EXPECT_EQ(compare(passing, failing), Duration(4000));
}

TEST(Divergence, Is_after_the_last_call_before_one_that_is_left_out) {
  TraceBuilder passing = one_thread(), failing = one_thread();
  passing.call("main", "a.cc:1:read", 1, 2).call("main", "a.cc:2:write", 3, 4);
  failing.call("main", "a.cc:1:read", 1, 2).call("main", "a.cc:9:close", 6, 7);
  EXPECT_EQ(compare(passing, failing), Duration(2000));
}

TEST(Divergence, Is_at_the_end_of_a_call_that_ends_differently) {
  TraceBuilder passing = one_thread(), failing = one_thread();
  passing.call("main", "a.cc:1:connect", 1, 2);
  failing.call("main", "a.cc:1:connect", 1, 3).returns(-1);
  EXPECT_EQ(compare(passing, failing), Duration(3000));
  EXPECT_EQ(first_error(passing.trace(), 0, failing.trace(), 0), Duration(3000));
}

}  // namespace
}  // namespace unflake
