#include "search/reproduce/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Flips = Candidate::Flips;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Visits = Intervention::Visits;

std::string place_of(const Candidate& candidate) {
  Intervention place = candidate.delay;
  place.action = Intervention::Action::watch;
  return to_string(place);
}

std::vector<std::string> places_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> places;
  for (const Candidate& candidate : candidates) places.push_back(place_of(candidate));
  return places;
}

FailurePoint at_the_end(const Trace& trace) {
  return {no_index, end_of(trace), ""};
}

std::vector<Candidate> candidates_of(const Trace& trace, const DelayLimits& limits = {}) {
  return find_candidates(trace, at_the_end(trace), limits);
}

// The first one there, all visits, without what outlasts unneeded time-outs.
Candidate candidate_at(const std::vector<Candidate>& all, const std::string& place) {
  for (const Candidate& one : all)
    if (place_of(one) == place && !one.is_long) return one;
  ADD_FAILURE() << "no candidate at " << place;
  return {};
}

// A worker computes and sets a flag under a lock; main sleeps and looks.
TraceBuilder trace_of_async_wait() {
  return TraceBuilder()
      .thread("main")
      .thread("w.cc:10#1", "main", 2, 8)
      .call("main", "w.cc:10:pthread_create", 1, 2, 0xa)
      .call("main", "w.cc:11:nanosleep", 3, 103)
      .asks_for(100)
      .times_out()
      .call("main", "w.cc:12:pthread_mutex_lock", 104, 104.1, 0xe)
      .call("main", "w.cc:14:pthread_join", 105, 106, 0xa)
      .call("w.cc:10#1", "w.cc:20:pthread_mutex_lock", 5, 5.1, 0xe)
      .call("w.cc:10#1", "w.cc:21:pthread_mutex_unlock", 6, 6.1, 0xe);
}

TEST(Candidates, Are_the_starts_of_threads_and_before_every_call) {
  EXPECT_THAT(places_of(candidates_of(trace_of_async_wait().trace())),
              testing::IsSupersetOf({"w.cc:10:pthread_create:start@w.cc:10#1",
                                     "w.cc:20:pthread_mutex_lock@w.cc:10#1",
                                     "w.cc:21:pthread_mutex_unlock@w.cc:10#1",
                                     "w.cc:11:nanosleep@main", "w.cc:14:pthread_join@main"}));
}

// Workers of one pool that all do the same, and one more thing that only the last of them does.
Trace trace_of_crowd(int workers) {
  TraceBuilder builder;
  builder.thread("main");
  for (int i = 1; i <= workers; ++i) {
    const std::string name = "pool.cc:31#" + std::to_string(i);
    builder.thread(name, "main", 1, 50)
        .call(name, "pool.cc:40:pthread_mutex_lock", 2 + 0.01 * i, 2 + 0.01 * i, 0xa)
        .call(name, "pool.cc:41:pthread_mutex_lock", 9 + 0.01 * i, 9 + 0.01 * i, 0xa);
  }
  const std::string last = "pool.cc:31#" + std::to_string(workers);
  builder.call(last, "pool.cc:42:pthread_mutex_lock", 20, 20, 0xb);
  builder.call("main", "main.cc:7:nanosleep", 2, 60).asks_for(58).times_out();
  return builder.trace();
}

TEST(Candidates, Of_many_threads_alike_some_stand_for_all) {
  std::vector<Candidate> few = candidates_of(trace_of_crowd(30));
  std::vector<Candidate> many = candidates_of(trace_of_crowd(300));
  leave_representatives(few, no_index);
  EXPECT_GT(leave_representatives(many, no_index), 500u);
  EXPECT_EQ(many.size(), few.size());
  EXPECT_THAT(places_of(many), Contains("pool.cc:42:pthread_mutex_lock@pool.cc:31#300"));
  EXPECT_THAT(places_of(many), Contains("pool.cc:42:pthread_mutex_lock@pool.cc:31#*"));
}

TEST(Candidates, Of_threads_alike_the_failing_one_stays) {
  const Trace trace = trace_of_crowd(300);
  std::vector<Candidate> many = candidates_of(trace);
  leave_representatives(many, 200);
  EXPECT_THAT(places_of(many), Contains("pool.cc:41:pthread_mutex_lock@pool.cc:31#200"));
}

TEST(Candidates, Of_a_small_pool_every_thread_is_one) {
  std::vector<Candidate> few = candidates_of(trace_of_crowd(8));
  EXPECT_EQ(leave_representatives(few, no_index), 0u);
}

TEST(Candidates, Are_behind_calls_only_when_somebody_may_go_on_meanwhile) {
  const auto places = places_of(candidates_of(trace_of_async_wait().trace()));
  EXPECT_THAT(places, Contains("w.cc:10:pthread_create:after@main"));
  EXPECT_THAT(places, Contains("w.cc:11:nanosleep:after@main"));
  EXPECT_THAT(places, Not(Contains("w.cc:20:pthread_mutex_lock:after@w.cc:10#1")));
}

TEST(Candidates, Leave_out_what_comes_after_the_failure) {
  const Trace trace = trace_of_async_wait().trace();
  const auto places = places_of(find_candidates(trace, {0, 104500us, ""}, {}));
  EXPECT_THAT(places, Contains("w.cc:12:pthread_mutex_lock@main"));
  EXPECT_THAT(places, Not(Contains("w.cc:14:pthread_join@main")));
}

TEST(Candidates, Leave_out_lines_and_the_plans_own_delays) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .call("main", "w.cc:13", 1, 1)
                          .delay("main", "w.cc:14:sched_yield", 1, 2)
                          .trace();
  EXPECT_THAT(candidates_of(trace), IsEmpty());
}

TEST(Candidates, Outlast_all_that_the_run_did_and_asked_for) {
  const auto all = candidates_of(trace_of_async_wait().trace());
  const Candidate early = candidate_at(all, "w.cc:20:pthread_mutex_lock@w.cc:10#1");
  EXPECT_GT(early.delay.duration, 101ms);
  EXPECT_LT(early.delay.duration, 500ms);
  EXPECT_GT(candidate_at(all, "w.cc:14:pthread_join@main").delay.duration, 100ms)
      << "the sleep may be another thread's next time";
}

TEST(Candidates, Are_late_by_100_ms_even_in_the_shortest_run) {
  const Trace trace =
      TraceBuilder().thread("main").call("main", "w.cc:1:sched_yield", 0, 0.001).trace();
  EXPECT_GE(candidates_of(trace).front().delay.duration, 100ms);
}

TEST(Candidates, Are_never_later_than_the_user_allows) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .call("main", "w.cc:1:nanosleep", 0, 60000)
                          .asks_for(60000)
                          .trace();
  for (const Duration most : {10ms, 3000ms, 200000ms}) {
    DelayLimits limits;
    limits.most = most;
    for (const Candidate& candidate : candidates_of(trace, limits))
      EXPECT_LE(candidate.delay.duration, most);
  }
}

TEST(Candidates, Outlast_a_long_time_out_that_was_not_needed_only_in_addition) {
  const Trace trace =
      TraceBuilder().thread("main").call("main", "w.cc:1:poll", 0, 1).asks_for(5000).trace();
  const auto all = candidates_of(trace);
  EXPECT_LT(candidate_at(all, "w.cc:1:poll@main").delay.duration, 1s);
  const auto is_longer = [](const Candidate& one) {
    return one.is_long && one.delay.duration > 5s;
  };
  EXPECT_TRUE(std::ranges::any_of(all, is_longer));
}

TEST(Candidates, Outlast_a_short_time_out_at_once) {
  const Trace trace =
      TraceBuilder().thread("main").call("main", "w.cc:1:poll", 0, 1).asks_for(500).trace();
  for (const Candidate& candidate : candidates_of(trace)) {
    EXPECT_FALSE(candidate.is_long);
    EXPECT_GT(candidate.delay.duration, 500ms);
  }
}

TEST(Candidates, Do_not_try_to_outlast_what_the_user_does_not_allow) {
  const Trace trace =
      TraceBuilder().thread("main").call("main", "w.cc:1:poll", 0, 1).asks_for(3600e3).trace();
  for (const Candidate& candidate : candidates_of(trace)) EXPECT_FALSE(candidate.is_long);
}

Trace loop(int visits) {
  TraceBuilder builder;
  builder.thread("main");
  for (int i = 0; i < visits; ++i) {
    builder.call("main", "w.cc:1:sched_yield", i * 10, i * 10 + 1);
    builder.call("main", "w.cc:2:sched_yield", i * 10 + 5, i * 10 + 6);
  }
  return builder.trace();
}

TEST(Candidates, Halve_the_delay_where_all_visits_would_take_too_long) {
  EXPECT_EQ(candidate_at(candidates_of(loop(2)), "w.cc:1:sched_yield@main").delay.visits,
            Visits::every);
  EXPECT_EQ(candidate_at(candidates_of(loop(1000)), "w.cc:1:sched_yield@main").delay.visits,
            Visits::halving);
}

TEST(Candidates, Are_single_visits_too_where_there_are_several) {
  std::set<uint64_t> visits;
  for (const Candidate& candidate : candidates_of(loop(10))) {
    if (!candidate.single_visit) continue;
    EXPECT_EQ(candidate.delay.visits, Visits::only_nth);
    visits.insert(candidate.delay.nth);
  }
  EXPECT_THAT(visits, ElementsAre(1, 10)) << "the first thing of the thread, and the last visit";
}

TEST(Candidates, Are_few_single_visits_of_a_place) {
  TraceBuilder builder;
  builder.thread("main");
  for (int i = 0; i < 500; ++i) builder.call("main", "w.cc:1:poll", i * 10, i * 10 + 9);
  EXPECT_LE(candidates_of(builder.trace()).size(), 20u);
}

TEST(Candidates, Flip_the_failure_point_when_the_failing_thread_gets_there_without_them) {
  const Trace trace = trace_of_async_wait().trace();
  const auto all = find_candidates(trace, {0, 104500us, ""}, {});
  EXPECT_EQ(candidate_at(all, "w.cc:20:pthread_mutex_lock@w.cc:10#1").flips, Flips::failure_point);
  EXPECT_EQ(candidate_at(all, "w.cc:10:pthread_create:start@w.cc:10#1").flips,
            Flips::failure_point);
}

TEST(Candidates, Flip_others_when_the_failing_thread_is_the_late_one) {
  const Trace trace = trace_of_async_wait().trace();
  const auto all = find_candidates(trace, {0, 104500us, ""}, {});
  EXPECT_EQ(candidate_at(all, "w.cc:10:pthread_create:after@main").flips, Flips::others);
}

TEST(Candidates, Of_a_single_thread_flip_its_own_time) {
  EXPECT_EQ(candidates_of(loop(1)).front().flips, Flips::own_time);
}

// Main joins the worker before the failure point: being late there makes main late, too.
TEST(Candidates, Do_not_flip_the_failure_point_when_the_failing_thread_waits_for_them) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .thread("w.cc:10#1", "main", 2, 6)
                          .call("main", "w.cc:10:pthread_create", 1, 2, 0xa)
                          .call("w.cc:10#1", "w.cc:20:sched_yield", 5, 5.1)
                          .call("main", "w.cc:11:pthread_join", 3, 7, 0xa)
                          .call("main", "w.cc:12:sched_yield", 8, 9)
                          .trace();
  const auto all = find_candidates(trace, {0, 10ms, ""}, {});
  EXPECT_LT(candidate_at(all, "w.cc:20:sched_yield@w.cc:10#1").flips, Flips::others);
}

TEST(Candidates, Are_the_beginnings_of_forked_processes) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .call("main", "w.cc:10:fork", 1, 2)
                          .returns(101)
                          .call("main", "w.cc:11:nanosleep", 3, 103)
                          .asks_for(100)
                          .process()
                          .thread("w.cc:10#1", "main", 2)
                          .call("w.cc:10#1", "w.cc:20:write", 5, 6)
                          .trace();
  const auto all = find_candidates(trace, {0, 103ms, ""}, {});
  EXPECT_EQ(candidate_at(all, "w.cc:10:fork:start@w.cc:10#1").flips, Flips::failure_point);
  EXPECT_EQ(candidate_at(all, "w.cc:20:write@w.cc:10#1").flips, Flips::failure_point);
}

TEST(Candidates, Of_a_trace_whose_numbers_refer_to_nothing_are_those_of_the_rest) {
  Trace trace = trace_of_async_wait().trace();
  trace.calls[0].thread = 99;
  trace.calls[1].site = 99;
  trace.threads[1].parent = 99;
  trace.threads[1].process = 99;
  EXPECT_THAT(candidates_of(trace), Not(IsEmpty()));
  EXPECT_THAT(find_candidates(Trace(), {99, 5ms, ""}, {}), IsEmpty());
}

// 64 threads that meet in conditions, semaphores and barriers all the time.
Trace huge_trace() {
  Trace trace = TraceBuilder()
                    .thread("main")
                    .call("main", "w.cc:1:pthread_cond_signal", 0, 1, 1)
                    .call("main", "w.cc:2:pthread_cond_wait", 1, 2, 1)
                    .call("main", "w.cc:3:sem_post", 2, 3, 2)
                    .call("main", "w.cc:4:sem_wait", 3, 4, 2)
                    .call("main", "w.cc:5:pthread_barrier_wait", 4, 5, 3)
                    .trace();
  trace.calls.clear();
  trace.threads.resize(64, trace.threads.front());
  for (uint32_t thread = 0; thread < 64; ++thread) {
    trace.threads[thread].name.text = "w.cc:9#" + std::to_string(thread);
    for (uint32_t i = 0; i < 1600; ++i) {
      TracedCall call;
      call.thread = thread;
      call.site = i % 5;
      call.object = i % 5 / 2;
      call.enter = Duration(i * 100 + thread);
      call.exit = call.enter + 50us;
      trace.calls.push_back(call);
    }
  }
  return trace;
}

TEST(Candidates, Of_a_huge_trace_are_bounded_and_found_quickly) {
  const Trace trace = huge_trace();
  auto all = candidates_of(trace);
  EXPECT_LT(all.size(), 64u * 5 * 2 * 7);
  arrange(all, Order::turns, 1);
}

Candidate simple(const std::string& site, const std::string& thread, Duration at, Flips flips) {
  Candidate candidate;
  candidate.delay.site = *parse_site(site);
  candidate.delay.threads = Intervention::Threads::named;
  candidate.delay.thread.text = thread;
  candidate.thread_class = thread.substr(0, thread.find('#'));
  candidate.at = at;
  candidate.flips = flips;
  return candidate;
}

TEST(Order, Of_turns_takes_threads_in_turn) {
  std::vector<Candidate> all = {simple("a.cc:1:poll", "main", 1ms, Flips::others),
                                simple("a.cc:2:poll", "main", 2ms, Flips::others),
                                simple("b.cc:1:poll", "w.cc:1#1", 3ms, Flips::others),
                                simple("b.cc:2:poll", "w.cc:1#1", 4ms, Flips::others)};
  arrange(all, Order::turns, 1);
  EXPECT_THAT(places_of(all), ElementsAre("a.cc:1:poll@main", "b.cc:1:poll@w.cc:1#1",
                                          "a.cc:2:poll@main", "b.cc:2:poll@w.cc:1#1"));
}

TEST(Order, Of_turns_puts_repeats_of_a_site_last) {
  std::vector<Candidate> all = {simple("a.cc:1:poll", "w.cc:1#1", 1ms, Flips::others),
                                simple("a.cc:1:poll", "w.cc:1#2", 2ms, Flips::others),
                                simple("a.cc:1:poll", "w.cc:1#3", 3ms, Flips::others),
                                simple("a.cc:2:poll", "w.cc:1#1", 4ms, Flips::others)};
  arrange(all, Order::turns, 1);
  EXPECT_THAT(places_of(all), ElementsAre("a.cc:1:poll@w.cc:1#1", "a.cc:2:poll@w.cc:1#1",
                                          "a.cc:1:poll@w.cc:1#2", "a.cc:1:poll@w.cc:1#3"));
}

TEST(Order, Of_turns_puts_single_visits_then_long_ones_then_what_flips_nothing_last) {
  std::vector<Candidate> all = {simple("a.cc:1:poll", "main", 1ms, Flips::nothing),
                                simple("a.cc:2:poll", "main", 2ms, Flips::others),
                                simple("a.cc:3:poll", "main", 3ms, Flips::others),
                                simple("a.cc:4:poll", "main", 4ms, Flips::own_time)};
  all[1].is_long = true;
  all[2].single_visit = true;
  arrange(all, Order::turns, 1);
  EXPECT_THAT(places_of(all), ElementsAre("a.cc:4:poll@main", "a.cc:3:poll@main",
                                          "a.cc:2:poll@main", "a.cc:1:poll@main"));
}

TEST(Order, Of_turns_begins_with_what_flips_the_failure_point_and_starts_a_burst) {
  std::vector<Candidate> all = {simple("a.cc:1:poll", "main", 1ms, Flips::others),
                                simple("a.cc:2:poll", "main", 2ms, Flips::failure_point),
                                simple("a.cc:3:poll", "main", 3ms, Flips::failure_point)};
  all[2].starts_burst = true;
  arrange(all, Order::turns, 1);
  EXPECT_THAT(places_of(all),
              ElementsAre("a.cc:3:poll@main", "a.cc:2:poll@main", "a.cc:1:poll@main"));
}

std::vector<Candidate> ten_candidates() {
  std::vector<Candidate> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(
        simple("a.cc:" + std::to_string(i + 1) + ":poll", "main", i * 1ms, Flips::own_time));
  return all;
}

TEST(Order, Nearest_is_by_time_backwards_and_appearance_forwards) {
  auto nearest = ten_candidates(), appearance = ten_candidates();
  arrange(nearest, Order::nearest, 1);
  arrange(appearance, Order::appearance, 1);
  std::ranges::reverse(nearest);
  EXPECT_EQ(places_of(nearest), places_of(appearance));
  EXPECT_EQ(nearest.front().at, 0ms);
}

TEST(Order, At_random_is_the_same_for_the_same_seed_only) {
  auto first = ten_candidates(), again = ten_candidates(), other = ten_candidates();
  arrange(first, Order::random, 7);
  arrange(again, Order::random, 7);
  arrange(other, Order::random, 8);
  EXPECT_EQ(places_of(first), places_of(again));
  EXPECT_NE(places_of(first), places_of(other));
}

TEST(Order, Has_a_name_that_is_understood) {
  for (const Order order : {Order::turns, Order::nearest, Order::appearance, Order::random})
    EXPECT_EQ(order_from(to_string(order)), order);
  EXPECT_EQ(order_from("furthest"), std::nullopt);
}

TEST(Chance, Decides_which_thread_of_a_pool_comes_somewhere_but_not_which_one_begins) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .thread("pool.cc:10#1", "main", 1, 8)
                          .thread("pool.cc:10#2", "main", 1, 8)
                          .trace();
  Intervention delay;
  delay.site = *parse_site("pool.cc:20:pthread_mutex_lock");
  delay.thread.text = "pool.cc:10#1";
  delay.threads = Intervention::Threads::named;
  EXPECT_TRUE(is_left_to_chance(delay, trace));
  const std::vector<Intervention> others = for_its_class(delay);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_TRUE(is_left_to_chance(others[0], trace)) << "the first to come";
  EXPECT_FALSE(is_left_to_chance(others[1], trace)) << "all of them";
  EXPECT_EQ(others[1].thread.text, "pool.cc:10#*");
  delay.position = Intervention::Position::start;
  EXPECT_FALSE(is_left_to_chance(delay, trace));
  EXPECT_EQ(for_its_class(delay).size(), 1u);
}

TEST(Chance, Has_no_part_in_the_main_threads_of_several_processes) {
  const Trace trace = TraceBuilder().thread("main").process().thread("main").trace();
  Intervention delay;
  delay.site = *parse_site("export.cc:20:unlink");
  delay.thread.text = "main";
  delay.threads = Intervention::Threads::named;
  EXPECT_FALSE(is_left_to_chance(delay, trace));
}

}  // namespace
}  // namespace unflake
