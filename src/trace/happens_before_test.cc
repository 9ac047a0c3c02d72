#include "trace/happens_before.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "protocol/timing_apis.h"
#include "support/trace_builder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Asks by sites, each of which is visited once.
class Order {
 public:
  explicit Order(const TraceBuilder& builder) : trace_(builder.trace()), order_(trace_) {}

  bool must_begin(const std::string& first, const std::string& before_end_of) const {
    return order_.before_end(number_of(first), number_of(before_end_of));
  }
  bool must_begin_before_begin(const std::string& first, const std::string& second) const {
    return order_.before_begin(number_of(first), number_of(second));
  }

 private:
  size_t number_of(const std::string& site) const {
    for (size_t i = 0; i < trace_.calls.size(); ++i)
      if (to_string(trace_.sites[trace_.calls[i].site].name) == site) return i;
    ADD_FAILURE() << "no event at " << site;
    return 0;
  }

  const Trace trace_;
  const HappensBefore order_;
};

TraceBuilder two_threads() {
  return TraceBuilder()
      .thread("main")
      .thread("a.cc:1#1", "main", 2)
      .call("main", "a.cc:1:pthread_create", 1, 3, 0xa);
}

TraceBuilder three_threads() {
  return two_threads()
      .thread("a.cc:2#1", "main", 4)
      .call("main", "a.cc:2:pthread_create", 3, 5, 0xb);
}

TEST(HappensBefore, A_thread_keeps_its_own_order) {
  const Order order(TraceBuilder()
                        .thread("main")
                        .call("main", "a.cc:1:sched_yield", 1, 2)
                        .call("main", "a.cc:2:sched_yield", 3, 4));
  EXPECT_TRUE(order.must_begin("a.cc:1:sched_yield", "a.cc:2:sched_yield"));
  EXPECT_FALSE(order.must_begin("a.cc:2:sched_yield", "a.cc:1:sched_yield"));
}

TEST(HappensBefore, A_creation_comes_before_all_that_the_thread_does) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:sched_yield", 5, 6)
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 7, 8));
  EXPECT_TRUE(order.must_begin_before_begin("a.cc:1:pthread_create", "a.cc:20:sched_yield"));
  EXPECT_FALSE(order.must_begin("a.cc:5:sched_yield", "a.cc:20:sched_yield"));
}

TEST(HappensBefore, A_creation_that_failed_made_nobody) {
  const Order order(TraceBuilder()
                        .thread("main")
                        .thread("a.cc:2#1", "main", 3)
                        .call("main", "a.cc:1:pthread_create", 0, 1)
                        .returns(11)
                        .call("main", "a.cc:2:pthread_create", 2, 4)
                        .call("a.cc:2#1", "a.cc:20:sched_yield", 5, 6));
  EXPECT_TRUE(order.must_begin("a.cc:2:pthread_create", "a.cc:20:sched_yield"));
}

TEST(HappensBefore, A_join_comes_after_all_that_the_thread_did) {
  const Order order(two_threads()
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 7, 8)
                        .call("main", "a.cc:9:pthread_join", 4, 10, 0xa));
  EXPECT_TRUE(order.must_begin("a.cc:20:sched_yield", "a.cc:9:pthread_join"));
  EXPECT_FALSE(order.must_begin_before_begin("a.cc:20:sched_yield", "a.cc:9:pthread_join"));
}

TEST(HappensBefore, A_join_says_nothing_of_other_threads) {
  const Order order(three_threads()
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 7, 8)
                        .call("main", "a.cc:9:pthread_join", 6, 10, 0xb));
  EXPECT_FALSE(order.must_begin("a.cc:20:sched_yield", "a.cc:9:pthread_join"));
}

TEST(HappensBefore, A_join_says_nothing_of_a_thread_of_another_process_with_the_same_handle) {
  const Order order(two_threads()
                        .process()
                        .thread("child", "main", 4)
                        .thread("b.cc:1#1", "child", 5)
                        .call("child", "b.cc:1:pthread_create", 5, 6, 0xa)
                        .call("b.cc:1#1", "b.cc:20:sched_yield", 7, 8)
                        .call("main", "a.cc:9:pthread_join", 4, 10, 0xa));
  EXPECT_FALSE(order.must_begin("b.cc:20:sched_yield", "a.cc:9:pthread_join"));
}

TEST(HappensBefore, A_signal_comes_before_the_end_of_the_wait) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_cond_wait", 5, 9, 0xc)
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 6, 7)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 8, 8.5, 0xc));
  EXPECT_TRUE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
  EXPECT_TRUE(order.must_begin("a.cc:20:sched_yield", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, A_signal_of_another_condition_is_no_edge) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_cond_wait", 5, 9, 0xc)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 8, 8.5, 0xd));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, A_signal_from_before_the_wait_is_no_edge) {
  const Order order(two_threads()
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 4, 4.5, 0xc)
                        .call("main", "a.cc:5:pthread_cond_wait", 5, 9, 0xc));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, Neither_of_two_threads_that_could_have_ended_a_wait_was_needed) {
  const Order order(three_threads()
                        .call("main", "a.cc:5:pthread_cond_wait", 5, 9, 0xc)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 7, 7.5, 0xc)
                        .call("a.cc:2#1", "a.cc:31:pthread_cond_signal", 8, 8.5, 0xc));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
  EXPECT_FALSE(order.must_begin("a.cc:31:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, A_timed_wait_orders_nothing) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_cond_clockwait", 5, 9, 0xc)
                        .asks_for(100)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 8, 8.5, 0xc));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_clockwait"));
}

TEST(HappensBefore, Who_took_a_mutex_first_is_no_order) {
  const Order order(two_threads()
                        .call("a.cc:1#1", "a.cc:20:pthread_mutex_lock", 5, 6, 0xe)
                        .call("a.cc:1#1", "a.cc:21:pthread_mutex_unlock", 7, 8, 0xe)
                        .call("main", "a.cc:5:pthread_mutex_lock", 6, 9, 0xe));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_mutex_unlock", "a.cc:5:pthread_mutex_lock"));
}

TEST(HappensBefore, A_sleep_orders_nothing) {
  const Order order(two_threads()
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 5, 6)
                        .call("main", "a.cc:5:nanosleep", 4, 100)
                        .asks_for(96));
  EXPECT_FALSE(order.must_begin("a.cc:20:sched_yield", "a.cc:5:nanosleep"));
}

TEST(HappensBefore, A_wait_that_never_ended_was_ended_by_nobody) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_cond_wait", 5, 9, 0xc)
                        .never_ends()
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 8, 8.5, 0xc));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, A_post_comes_before_the_acquire_that_needed_it) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:sem_wait", 5, 9, 0xf)
                        .call("a.cc:1#1", "a.cc:21:sem_post", 8, 8.5, 0xf));
  EXPECT_TRUE(order.must_begin("a.cc:21:sem_post", "a.cc:5:sem_wait"));
}

TEST(HappensBefore, An_acquire_of_what_was_there_at_first_needs_no_post) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:sem_wait", 5, 6, 0xf)
                        .call("a.cc:1#1", "a.cc:21:sem_post", 8, 8.5, 0xf)
                        .call("main", "a.cc:7:sem_wait", 7, 9, 0xf));
  EXPECT_FALSE(order.must_begin("a.cc:21:sem_post", "a.cc:5:sem_wait"));
  EXPECT_TRUE(order.must_begin("a.cc:21:sem_post", "a.cc:7:sem_wait"));
}

TEST(HappensBefore, One_acquire_needs_neither_of_two_posts_by_different_threads) {
  const Order order(three_threads()
                        .call("a.cc:1#1", "a.cc:21:sem_post", 6, 6.5, 0xf)
                        .call("a.cc:2#1", "a.cc:31:sem_post", 7, 7.5, 0xf)
                        .call("main", "a.cc:5:sem_wait", 5, 9, 0xf));
  EXPECT_FALSE(order.must_begin("a.cc:21:sem_post", "a.cc:5:sem_wait"));
  EXPECT_FALSE(order.must_begin("a.cc:31:sem_post", "a.cc:5:sem_wait"));
}

TEST(HappensBefore, As_many_acquires_as_posts_need_all_of_them) {
  const Order order(three_threads()
                        .call("a.cc:1#1", "a.cc:21:sem_post", 6, 6.5, 0xf)
                        .call("a.cc:2#1", "a.cc:31:sem_post", 7, 7.5, 0xf)
                        .call("main", "a.cc:5:sem_wait", 5, 9, 0xf)
                        .call("main", "a.cc:6:sem_wait", 9, 10, 0xf));
  EXPECT_TRUE(order.must_begin("a.cc:21:sem_post", "a.cc:6:sem_wait"));
  EXPECT_TRUE(order.must_begin("a.cc:31:sem_post", "a.cc:6:sem_wait"));
}

TEST(HappensBefore, A_timed_acquire_uses_up_a_post) {
  const Order order(two_threads()
                        .call("a.cc:1#1", "a.cc:21:sem_post", 4, 4.5, 0xf)
                        .call("main", "a.cc:5:sem_timedwait", 5, 6, 0xf)
                        .asks_for(100)
                        .call("a.cc:1#1", "a.cc:22:sem_post", 8, 8.5, 0xf)
                        .call("main", "a.cc:6:sem_wait", 7, 9, 0xf));
  EXPECT_TRUE(order.must_begin("a.cc:22:sem_post", "a.cc:6:sem_wait"));
}

TEST(HappensBefore, A_barrier_lets_nobody_go_before_all_have_come) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_barrier_wait", 5, 9, 0xba)
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 6, 7)
                        .call("a.cc:1#1", "a.cc:21:pthread_barrier_wait", 8, 9, 0xba));
  EXPECT_TRUE(order.must_begin("a.cc:20:sched_yield", "a.cc:5:pthread_barrier_wait"));
  EXPECT_TRUE(order.must_begin("a.cc:5:pthread_barrier_wait", "a.cc:21:pthread_barrier_wait"));
}

TEST(HappensBefore, A_barrier_does_not_wait_for_the_next_round) {
  const Order order(two_threads()
                        .call("main", "a.cc:5:pthread_barrier_wait", 5, 12, 0xba)
                        .call("a.cc:1#1", "a.cc:21:pthread_barrier_wait", 8, 9, 0xba)
                        .call("a.cc:1#1", "a.cc:22:sched_yield", 10, 10.5)
                        .call("a.cc:1#1", "a.cc:23:pthread_barrier_wait", 11, 14, 0xba));
  EXPECT_TRUE(order.must_begin("a.cc:21:pthread_barrier_wait", "a.cc:5:pthread_barrier_wait"));
  EXPECT_FALSE(order.must_begin("a.cc:22:sched_yield", "a.cc:5:pthread_barrier_wait"));
}

TEST(HappensBefore, An_exit_comes_before_the_end_of_the_wait_for_it) {
  const Order order(TraceBuilder()
                        .thread("main")
                        .call("main", "a.cc:1:fork", 1, 2)
                        .returns(101)
                        .call("main", "a.cc:2:waitpid", 3, 9)
                        .returns(101)
                        .process()
                        .thread("other!main", "main", 2)
                        .call("other!main", "b.cc:1:sched_yield", 5, 6));
  EXPECT_TRUE(order.must_begin("b.cc:1:sched_yield", "a.cc:2:waitpid"));
}

TEST(HappensBefore, A_wait_for_a_process_that_did_not_end_is_no_edge) {
  const Order order(TraceBuilder()
                        .thread("main")
                        .call("main", "a.cc:1:fork", 1, 2)
                        .returns(101)
                        .call("main", "a.cc:2:waitpid", 3, 9)
                        .returns(0)
                        .process()
                        .thread("other!main", "main", 2)
                        .call("other!main", "b.cc:1:sched_yield", 5, 6));
  EXPECT_FALSE(order.must_begin("b.cc:1:sched_yield", "a.cc:2:waitpid"));
}

TEST(HappensBefore, A_process_needs_its_fork_and_nothing_that_the_parent_did_after_it) {
  const Order order(TraceBuilder()
                        .thread("main")
                        .call("main", "a.cc:1:fork", 1, 2)
                        .returns(101)
                        .call("main", "a.cc:2:sched_yield", 3, 4)
                        .process()
                        .thread("other!main", "main", 2)
                        .call("other!main", "b.cc:1:sched_yield", 5, 6));
  EXPECT_TRUE(order.must_begin("a.cc:1:fork", "b.cc:1:sched_yield"));
  EXPECT_FALSE(order.must_begin("a.cc:2:sched_yield", "b.cc:1:sched_yield"));
}

TEST(HappensBefore, A_delay_of_the_plan_is_no_call) {
  const Order order(two_threads()
                        .delay("main", "a.cc:5:pthread_cond_wait", 5, 9)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 8, 8.5));
  EXPECT_FALSE(order.must_begin("a.cc:21:pthread_cond_signal", "a.cc:5:pthread_cond_wait"));
}

TEST(HappensBefore, Goes_from_thread_to_thread) {
  const Order order(three_threads()
                        .call("a.cc:1#1", "a.cc:20:sched_yield", 6, 6.5)
                        .call("a.cc:1#1", "a.cc:21:pthread_cond_signal", 7, 7.5, 0xc)
                        .call("a.cc:2#1", "a.cc:30:pthread_cond_wait", 6, 8, 0xc)
                        .call("a.cc:2#1", "a.cc:31:sem_post", 9, 9.5, 0xf)
                        .call("main", "a.cc:5:sem_wait", 5, 10, 0xf));
  EXPECT_TRUE(order.must_begin("a.cc:20:sched_yield", "a.cc:5:sem_wait"));
}

TEST(HappensBefore, Of_calls_that_name_no_thread_or_site_is_not_known) {
  Trace trace = two_threads().call("a.cc:1#1", "a.cc:20:sched_yield", 7, 8).trace();
  trace.calls.back().thread = 77;
  trace.calls.front().site = no_index;
  const HappensBefore order(trace);
  EXPECT_FALSE(order.before_end(0, 1));
  EXPECT_FALSE(order.before_end(1, 0));
}

TracedSite site_of(const std::string& api) {
  return TraceBuilder().thread("main").call("main", "a.cc:1:" + api, 0, 1).trace().sites[0];
}

TEST(ApiTraits, Are_those_of_the_call) {
  EXPECT_TRUE(may_wait(site_of("sem_wait")));
  EXPECT_FALSE(takes_time(site_of("sem_wait")));
  EXPECT_TRUE(can_wake(site_of("sem_post")));
  EXPECT_TRUE(takes_time(site_of("nanosleep")));
  EXPECT_TRUE(makes_thread(site_of("pthread_create")));
  EXPECT_TRUE(makes_process(site_of("posix_spawnp")));
  EXPECT_FALSE(makes_process(site_of("waitpid")));
}

TEST(ApiTraits, Are_none_of_a_line_whatever_its_number_says) {
  TracedSite line = site_of("sem_wait");
  line.name.api.clear();
  EXPECT_FALSE(may_wait(line));
}

TEST(ApiTraits, Are_none_of_a_call_that_is_not_known) {
  TracedSite unknown = site_of("sem_wait");
  unknown.api = 0xffff;
  EXPECT_FALSE(may_wait(unknown));
}

TEST(ApiTraits, A_wait_without_a_time_only_somebody_else_can_end) {
  TracedCall forever, timed;
  timed.value = 1000;
  EXPECT_TRUE(is_untimed_wait(site_of("poll"), forever));
  EXPECT_FALSE(is_untimed_wait(site_of("poll"), timed));
  EXPECT_TRUE(is_untimed_wait(site_of("sem_wait"), timed));
  EXPECT_FALSE(is_untimed_wait(site_of("sem_post"), forever));
}

// Both threads are the first of their name, and the second one was quicker.
TEST(Creations, On_one_line_are_told_apart_by_the_call_and_not_by_who_began_first) {
  Trace trace = TraceBuilder()
                    .thread("main")
                    .thread("a.cc:1~1eb0#1", "main", 3)
                    .thread("a.cc:1~0e14#1", "main", 4)
                    .call("main", "a.cc:1:pthread_create", 1, 2, 0xa)
                    .call("main", "a.cc:1:pthread_create#2", 2, 3, 0xb)
                    .trace();
  for (uint32_t i = 0; i < 2; ++i) {
    trace.sites[i].image = 0;
    trace.sites[i].address = 0x1000 + i;
    const TracedFrame library{1, 0x5, {}}, caller{0, 0x1000 + i, {}, 0};
    trace.stacks.push_back({{library, caller}});
  }
  trace.threads[1].spawn_stack = 1;
  trace.threads[2].spawn_stack = 0;
  EXPECT_EQ(find_creations(trace), (std::vector<size_t>{no_call, 1, 0}));
  trace.threads[1].spawn_stack = trace.threads[2].spawn_stack = no_index;
  EXPECT_EQ(find_creations(trace), (std::vector<size_t>{no_call, 0, 1}));
}

std::vector<std::string> apis_where(const std::function<bool(const protocol::ApiFacts&)>& holds) {
  std::vector<std::string> names;
  for (const protocol::ApiFacts& api : protocol::api_facts)
    if (holds(api)) names.emplace_back(api.name);
  return names;
}

TEST(TimingApis, Every_call_has_the_columns_that_its_kind_needs) {
  using namespace protocol;
  const auto in_group = [](const ApiFacts& api, uint16_t trait) {
    return (api.group_facts().traits & trait) != 0;
  };
  EXPECT_THAT(apis_where([](const ApiFacts& api) { return !is_complete(api); }), IsEmpty());
  // Those that are given a time but have no C function of their name.
  EXPECT_THAT(apis_where([](const ApiFacts& api) {
                return api.traits & api_timed && api.time_argument == 0;
              }),
              ElementsAre("futex_wait"));
  EXPECT_THAT(apis_where([&](const ApiFacts& api) {
                return in_group(api, group_forgets) &&
                       ((api.traits & api_wait) != 0) != (api.edge == Edge::notified);
              }),
              IsEmpty());
  EXPECT_THAT(apis_where([&](const ApiFacts& api) {
                return in_group(api, group_sleeps) && api.traits != (api_wait | api_timed);
              }),
              IsEmpty());
  EXPECT_THAT(apis_where([&](const ApiFacts& api) {
                return in_group(api, group_timers) && api.timer != Timer::file &&
                       api.timer != Timer::signal;
              }),
              IsEmpty());
  EXPECT_THAT(apis_where([&](const ApiFacts& api) {
                return in_group(api, group_looks) && (api.traits != 0 || api.edge != Edge::none);
              }),
              IsEmpty());
}

TEST(TimingApis, Columns_that_contradict_each_other_are_refused) {
  using namespace protocol;
  const auto fits = [](uint16_t traits, Edge edge, Timer timer = Timer::none,
                       uint8_t time_argument = 0) {
    return is_complete({"a", "lock", Group::lock_group, traits, edge, timer, time_argument, 1});
  };
  EXPECT_TRUE(fits(api_wakes, Edge::creates));
  EXPECT_FALSE(fits(api_wait, Edge::creates));
  EXPECT_TRUE(fits(api_wait, Edge::joins));
  EXPECT_FALSE(fits(0, Edge::joins));
  EXPECT_FALSE(fits(api_wakes, Edge::notified));
  EXPECT_FALSE(fits(api_wait, Edge::meets));
  EXPECT_TRUE(fits(api_wait | api_timed, Edge::none, Timer::none, 1));
  EXPECT_FALSE(fits(api_wait, Edge::none, Timer::none, 1));   // a time, and is not timed
  EXPECT_FALSE(fits(api_timed, Edge::none, Timer::none, 1));  // neither waits nor sets a timer
  EXPECT_FALSE(fits(api_timed | api_wait, Edge::none, Timer::signal, 1));
}

}  // namespace
}  // namespace unflake
