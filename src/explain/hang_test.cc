#include "explain/hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> lines_of(const Trace& hung, const Trace* passing = nullptr) {
  const Wrappers wrappers({&hung});
  return describe_hang(hung, passing, wrappers);
}

TraceBuilder a_bell() {
  TraceBuilder builder;
  builder.thread("main").thread("r.cc:5#1", "main", 1);
  builder.call("main", "r.cc:5:pthread_create", 0.5, 1, 0xc);
  return builder;
}

TEST(Hang, Tells_whose_lock_it_is) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .thread("w.cc:5#1", "main", 1)
                          .call("main", "a.cc:1:pthread_mutex_lock", 1, 1, 0xa)
                          .call("main", "a.cc:2:pthread_mutex_lock", 3, 9, 0xb)
                          .never_ends()
                          .call("w.cc:5#1", "b.cc:1:pthread_mutex_lock", 2, 2, 0xb)
                          .call("w.cc:5#1", "b.cc:2:pthread_mutex_lock", 4, 9, 0xa)
                          .never_ends()
                          .trace();
  EXPECT_THAT(lines_of(trace),
              ElementsAre("main waits at a.cc:2 for the lock that w.cc:5#1 has since b.cc:1",
                          "w.cc:5#1 waits at b.cc:2 for the lock that main has since a.cc:1"));
}

TEST(Hang, Tells_who_wakes_it_when_the_test_passes_and_came_too_early) {
  TraceBuilder passing = a_bell(), hung = a_bell();
  passing.call("main", "r.cc:9:pthread_cond_wait", 2, 6, 0xd)
      .call("r.cc:5#1", "r.cc:20:pthread_cond_signal", 5, 5, 0xd);
  hung.call("r.cc:5#1", "r.cc:20:pthread_cond_signal", 5, 5, 0xd)
      .call("main", "r.cc:9:pthread_cond_wait", 8, 90, 0xd)
      .never_ends();
  const Trace passed = passing.trace();
  EXPECT_THAT(lines_of(hung.trace(), &passed),
              ElementsAre("main waits at r.cc:9 to be woken by r.cc:5#1, as at r.cc:20 when the "
                          "test passes: here that came 3.00 ms before the wait began, and was "
                          "lost"));
}

TEST(Hang, Tells_that_who_should_wake_it_waits_itself) {
  TraceBuilder passing = a_bell(), hung = a_bell();
  passing.call("main", "r.cc:9:pthread_cond_wait", 2, 6, 0xd)
      .call("r.cc:5#1", "r.cc:18:read", 3, 4, 0x4)
      .call("r.cc:5#1", "r.cc:20:pthread_cond_signal", 5, 5, 0xd);
  hung.call("main", "r.cc:9:pthread_cond_wait", 8, 90, 0xd)
      .never_ends()
      .call("r.cc:5#1", "r.cc:18:read", 3, 90, 0x4)
      .never_ends();
  const Trace passed = passing.trace();
  const auto lines = lines_of(hung.trace(), &passed);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], testing::HasSubstr("here it waits itself, at r.cc:18"));
}

TEST(Hang, Tells_for_whose_end_it_waits) {
  TraceBuilder hung = a_bell();
  hung.call("main", "r.cc:30:pthread_join", 2, 90, 0xc).never_ends();
  EXPECT_THAT(lines_of(hung.trace()), ElementsAre("main waits at r.cc:30 for the end of r.cc:5#1"));
}

TEST(Hang, Many_threads_that_wait_alike_are_told_together) {
  TraceBuilder hung;
  hung.thread("main");
  for (int i = 1; i <= 40; ++i) {
    const std::string name = "p.cc:3#" + std::to_string(i);
    hung.thread(name, "main", 1).call(name, "p.cc:9:pthread_cond_wait", 2, 90, 0xd).never_ends();
  }
  EXPECT_THAT(lines_of(hung.trace()),
              ElementsAre("40 threads (p.cc:3) wait at p.cc:9 for what nobody is left to do"));
}

TEST(Hang, A_wait_with_a_time_out_is_none) {
  TraceBuilder hung;
  hung.thread("main")
      .call("main", "p.cc:9:pthread_cond_timedwait", 2, 90, 0xd)
      .asks_for(1000)
      .never_ends();
  EXPECT_THAT(lines_of(hung.trace()), IsEmpty());
}

}  // namespace
}  // namespace unflake
