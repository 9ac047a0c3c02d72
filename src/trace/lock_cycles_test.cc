#include "trace/happens_before.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

constexpr uint64_t left = 1, right = 2, gate = 3, third = 4;

// Takes both locks and gives them back, from this time on.
void nests(TraceBuilder& run, const std::string& thread, const std::string& file, uint64_t outer,
           uint64_t inner, double at) {
  run.call(thread, file + ":1:pthread_mutex_lock", at, at + 0.1, outer)
      .call(thread, file + ":2:pthread_mutex_lock", at + 0.2, at + 0.3, inner)
      .call(thread, file + ":3:pthread_mutex_unlock", at + 0.4, at + 0.5, inner)
      .call(thread, file + ":4:pthread_mutex_unlock", at + 0.6, at + 0.7, outer);
}

TraceBuilder threads() {
  TraceBuilder run;
  run.thread("main").thread("a.cc:1#1", "main").thread("a.cc:1#2", "main");
  return run;
}

TEST(LockCycles, are_locks_that_two_threads_take_in_opposite_orders) {
  TraceBuilder run = threads();
  nests(run, "main", "m.cc", left, right, 0);
  nests(run, "a.cc:1#1", "w.cc", right, left, 10);
  const auto found = find_lock_cycles(run.trace());
  ASSERT_EQ(1u, found.size());
  const auto& plan = found[0].plan;
  ASSERT_EQ(4u, plan.size());
  EXPECT_EQ("m.cc:1:pthread_mutex_lock", to_string(plan[0].site));
  EXPECT_EQ(Intervention::Action::watch, plan[0].action);
  EXPECT_EQ("m.cc:2:pthread_mutex_lock", to_string(plan[2].site));
  EXPECT_EQ(Intervention::Action::hold, plan[2].action);
  EXPECT_EQ(1u, plan[2].until);  // the worker's first lock
  EXPECT_EQ(0u, plan[3].until);
}

TEST(LockCycles, are_none_where_all_take_locks_in_one_order) {
  TraceBuilder run = threads();
  nests(run, "main", "m.cc", left, right, 0);
  nests(run, "a.cc:1#1", "w.cc", left, right, 10);
  EXPECT_TRUE(find_lock_cycles(run.trace()).empty());
}

TEST(LockCycles, are_none_within_one_thread) {
  TraceBuilder run = threads();
  nests(run, "main", "m.cc", left, right, 0);
  nests(run, "main", "n.cc", right, left, 10);
  EXPECT_TRUE(find_lock_cycles(run.trace()).empty());
}

TEST(LockCycles, are_none_behind_a_lock_that_all_of_them_hold) {
  TraceBuilder run = threads();
  for (const auto& [thread, at] : {std::pair("main", 0.0), std::pair("a.cc:1#1", 10.0)}) {
    run.call(thread, "g.cc:1:pthread_mutex_lock", at, at + 0.01, gate);
    nests(run, thread, at == 0 ? "m.cc" : "w.cc", at == 0 ? left : right, at == 0 ? right : left,
          at + 0.1);
    run.call(thread, "g.cc:2:pthread_mutex_unlock", at + 2, at + 2.1, gate);
  }
  EXPECT_TRUE(find_lock_cycles(run.trace()).empty());
}

TEST(LockCycles, may_have_three_threads) {
  TraceBuilder run = threads();
  nests(run, "main", "m.cc", left, right, 0);
  nests(run, "a.cc:1#1", "v.cc", right, third, 10);
  nests(run, "a.cc:1#2", "w.cc", third, left, 20);
  const auto found = find_lock_cycles(run.trace());
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(6u, found[0].plan.size());
}

TEST(LockCycles, name_the_visit_at_which_both_locks_were_held) {
  TraceBuilder run = threads();
  run.call("main", "m.cc:1:pthread_mutex_lock", 0, 0.1, gate)
      .call("main", "m.cc:4:pthread_mutex_unlock", 0.2, 0.3, gate);
  nests(run, "main", "m.cc", left, right, 1);
  nests(run, "a.cc:1#1", "w.cc", right, left, 10);
  const auto found = find_lock_cycles(run.trace());
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(2u, found[0].plan[3].count);  // the worker waits for main's second visit
}

TEST(LockCycles, leave_out_locks_that_were_not_taken) {
  TraceBuilder run = threads();
  nests(run, "main", "m.cc", left, right, 0);
  run.call("a.cc:1#1", "w.cc:1:pthread_mutex_trylock", 10, 10.1, right)
      .returns(16)
      .call("a.cc:1#1", "w.cc:2:pthread_mutex_lock", 10.2, 10.3, left);
  EXPECT_TRUE(find_lock_cycles(run.trace()).empty());
}

}  // namespace
}  // namespace unflake
