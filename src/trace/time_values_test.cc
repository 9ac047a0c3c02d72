#include "trace/time_values.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr char sleep_site[] = "a.cc:1:nanosleep";
constexpr char wait_site[] = "a.cc:2:pthread_cond_clockwait";
constexpr char poll_site[] = "a.cc:3:poll";
constexpr char socket_site[] = "a.cc:4:setsockopt";
constexpr char receive_site[] = "a.cc:5:recv";
constexpr char timer_site[] = "a.cc:6:timerfd_settime";
constexpr char read_site[] = "a.cc:7:read";
constexpr char close_site[] = "a.cc:8:close";
constexpr char receive_many_site[] = "a.cc:10:recvmmsg";
constexpr char alarm_site[] = "a.cc:9:alarm";

std::vector<TimeValue> values_of(const TraceBuilder& builder) {
  const Trace trace = builder.trace();
  const Trace* const runs[] = {&trace};
  return time_values(runs);
}

// The only one.
TimeValue value_of(const TraceBuilder& builder) {
  auto all = values_of(builder);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? TimeValue() : all[0];
}

TraceBuilder one_thread() {
  TraceBuilder builder;
  builder.thread("main");
  return builder;
}

TEST(TimeValues, A_time_that_always_runs_out_is_a_wait) {
  auto run = one_thread();
  run.call("main", sleep_site, 0, 100).asks_for(100).times_out();
  run.call("main", sleep_site, 200, 301).asks_for(100).times_out();
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.use(), TimeUse::wait);
  EXPECT_EQ(to_string(value.site), sleep_site);
  EXPECT_EQ(value.group, "sleep");
  EXPECT_EQ(value.visits, 2u);
  EXPECT_EQ(value.ran_out, 2u);
  EXPECT_EQ(value.spent, 201ms);
  EXPECT_TRUE(value.early.empty());
}

TEST(TimeValues, A_time_that_always_ends_early_is_a_time_out) {
  auto run = one_thread();
  run.call("main", poll_site, 0, 3).asks_for(5000).returns(1);
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.use(), TimeUse::timeout);
  EXPECT_EQ(value.ended_early, 1u);
  EXPECT_EQ(value.early, std::vector<Duration>{3ms});
}

TEST(TimeValues, A_time_that_does_both_is_mixed) {
  auto run = one_thread();
  run.call("main", poll_site, 0, 3).asks_for(50);
  run.call("main", poll_site, 10, 60).asks_for(50).times_out();
  EXPECT_EQ(value_of(run).use(), TimeUse::mixed);
}

TEST(TimeValues, Threads_and_runs_of_one_place_are_counted_together) {
  TraceBuilder one = one_thread();
  one.thread("worker", "main");
  one.call("main", sleep_site, 0, 10).asks_for(10).times_out();
  one.call("worker", sleep_site, 5, 25).asks_for(20).times_out();
  auto two = one_thread();
  two.call("main", sleep_site, 0, 30).asks_for(30).times_out();
  const Trace first = one.trace(), second = two.trace();
  const Trace* const runs[] = {&first, nullptr, &second};
  const auto all = time_values(runs);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].runs, 2u);
  EXPECT_EQ(all[0].visits, 3u);
  EXPECT_EQ(all[0].least, 10ms);
  EXPECT_EQ(all[0].most, 30ms);
  EXPECT_FALSE(all[0].is_constant());
  EXPECT_EQ(all[0].spent_per_run(), 30ms);
}

TEST(TimeValues, The_most_expensive_place_comes_first) {
  auto run = one_thread();
  run.call("main", sleep_site, 0, 10).asks_for(10).times_out();
  run.call("main", poll_site, 10, 60).asks_for(50).times_out();
  const auto all = values_of(run);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(to_string(all[0].site), poll_site);
}

TEST(TimeValues, A_wait_made_again_for_the_rest_is_one_wait) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 30, 7).asks_for(99.9901);
  run.call("main", wait_site, 30.1, 60, 7).asks_for(69.9);
  run.call("main", wait_site, 60.2, 100, 7).asks_for(39.8).times_out();
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.visits, 1u);
  EXPECT_EQ(value.ran_out, 1u);
  EXPECT_EQ(value.ended_early, 0u);
  EXPECT_EQ(value.least, 100ms);
  EXPECT_TRUE(value.is_constant());
  EXPECT_EQ(value.spent, 30ms + 29900us + 39800us);
}

TEST(TimeValues, A_wait_made_again_that_ends_early_took_its_whole_time) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 30, 7).asks_for(100);
  run.call("main", wait_site, 30.1, 60, 7).asks_for(69.9);
  EXPECT_EQ(value_of(run).early, std::vector<Duration>{60ms});
}

TEST(TimeValues, A_wait_made_again_when_nothing_is_left_has_run_out) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 99.9, 7).asks_for(100);
  run.call("main", wait_site, 100.1, 100.2, 7).asks_for(0).times_out();
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.visits, 1u);
  EXPECT_EQ(value.ran_out, 1u);
}

TEST(TimeValues, A_wait_that_is_woken_in_vain_after_its_time_has_run_out) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 60, 7).asks_for(100);
  run.call("main", wait_site, 60.1, 100.3, 7).asks_for(39.9);
  EXPECT_EQ(value_of(run).use(), TimeUse::wait);
}

TEST(TimeValues, Waits_for_the_whole_time_again_are_several) {
  auto run = one_thread();
  for (int i = 0; i < 5; ++i)
    run.call("main", wait_site, i * 0.1, i * 0.1 + 0.05, 7).asks_for(9.998);
  EXPECT_EQ(value_of(run).visits, 5u);
}

TEST(TimeValues, Waits_for_other_things_are_several) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 30, 7).asks_for(100);
  run.call("main", wait_site, 30.1, 60, 8).asks_for(69.9);
  EXPECT_EQ(value_of(run).visits, 2u);
}

TEST(TimeValues, A_wait_that_the_end_of_the_process_ended_says_nothing) {
  auto run = one_thread();
  run.call("main", sleep_site, 5, 0).asks_for(1000).never_ends();
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.visits, 1u);
  EXPECT_EQ(value.ran_out + value.ended_early, 0u);
  EXPECT_EQ(value.use(), TimeUse::not_seen);
  EXPECT_EQ(value.spent, 0ms);
}

TEST(TimeValues, Looks_and_endless_waits_have_no_time) {
  auto run = one_thread();
  run.call("main", poll_site, 0, 0).asks_for(0).times_out();
  run.call("main", poll_site, 1, 5);
  run.call("main", alarm_site, 6, 6).asks_for(0);
  run.call("main", wait_site, 7, 8).asks_for(9e12);
  run.call("main", read_site, 9, 9).asks_for(4096);
  EXPECT_TRUE(values_of(run).empty());
}

TEST(TimeValues, A_delay_of_the_plan_is_no_time_of_the_test) {
  auto run = one_thread();
  run.delay("main", sleep_site, 0, 10).asks_for(10);
  EXPECT_TRUE(values_of(run).empty());
}

TEST(TimeValues, One_time_is_what_was_meant_by_it) {
  EXPECT_EQ(meant_time(119'998'731), 120ms);
  EXPECT_EQ(meant_time(37'251'000), Duration(37'251));
}

TEST(TimeValues, A_deadline_is_known_by_what_was_meant) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 100).asks_for(99.98).times_out();
  run.call("main", wait_site, 200, 300).asks_for(99.991).times_out();
  EXPECT_TRUE(value_of(run).is_constant());
  EXPECT_EQ(value_of(run).least, 100ms);
  EXPECT_EQ(value_of(run).most, 100ms);
}

TEST(TimeValues, Exact_times_are_not_rounded) {
  auto run = one_thread();
  run.call("main", sleep_site, 0, 100).asks_for(99.5).times_out();
  EXPECT_EQ(value_of(run).least, 99500us);
}

TEST(TimeValues, A_difference_of_more_than_one_percent_stays) {
  auto run = one_thread();
  run.call("main", sleep_site, 0, 100).asks_for(98.5).times_out();
  run.call("main", sleep_site, 200, 300).asks_for(99.9).times_out();
  EXPECT_FALSE(value_of(run).is_constant());
  EXPECT_EQ(value_of(run).least, 98500us);
  EXPECT_EQ(value_of(run).most, 99900us);
}

TEST(TimeValues, No_round_number_near_leaves_the_time_as_it_is) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 1).asks_for(0.080001).times_out();
  run.call("main", wait_site, 2, 3).asks_for(0.098001).times_out();
  EXPECT_TRUE(value_of(run).is_constant());
  EXPECT_EQ(value_of(run).least, 80us);
  EXPECT_EQ(value_of(run).most, 98us);
}

TEST(TimeValues, The_time_out_of_a_socket_is_judged_by_its_reads) {
  auto run = one_thread();
  run.call("main", socket_site, 0, 0, 5).asks_for(200);
  run.call("main", receive_site, 1, 3, 5).returns(10);
  run.call("main", receive_site, 4, 205, 5).returns(-1);
  run.call("main", receive_site, 300, 301, 6).returns(-1);
  run.call("main", close_site, 400, 400, 5);
  run.call("main", receive_site, 500, 800, 5).returns(-1);
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.ran_out, 1u);
  EXPECT_EQ(value.ended_early, 1u);
  EXPECT_EQ(value.spent, 203ms);
}

TEST(TimeValues, A_read_with_a_time_of_its_own_is_a_wait_and_a_read) {
  auto run = one_thread();
  run.call("main", socket_site, 0, 0, 5).asks_for(200);
  run.call("main", receive_many_site, 1, 31, 5).asks_for(30).returns(1).times_out();
  const auto all = values_of(run);
  ASSERT_EQ(all.size(), 2u);
  for (const TimeValue& value : all) {
    EXPECT_EQ(value.spent, 30ms);
    EXPECT_EQ(value.use(), value.site.api == "recvmmsg" ? TimeUse::wait : TimeUse::timeout);
  }
}

TEST(TimeValues, A_read_that_fails_at_once_did_not_run_out) {
  auto run = one_thread();
  run.call("main", socket_site, 0, 0, 5).asks_for(200);
  run.call("main", receive_site, 1, 3, 5).returns(-1);
  EXPECT_EQ(value_of(run).use(), TimeUse::timeout);
}

TEST(TimeValues, Reads_by_another_thread_count_and_of_another_process_do_not) {
  auto run = one_thread();
  run.thread("reader", "main");
  run.process().thread("other!main");
  run.call("main", socket_site, 0, 0, 5).asks_for(200);
  run.call("reader", receive_site, 1, 202, 5).returns(-1);
  run.call("other!main", receive_site, 2, 3, 5).returns(1);
  EXPECT_EQ(value_of(run).use(), TimeUse::wait);
}

TEST(TimeValues, A_timer_that_could_be_read_has_run_out) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", read_site, 10, 50, 5).returns(8);
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.use(), TimeUse::wait);
  EXPECT_EQ(value.spent, 40ms);
}

TEST(TimeValues, A_timer_that_is_polled_before_it_is_read_takes_its_time) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", poll_site, 1, 50);
  run.call("main", read_site, 50.1, 50.102, 5).returns(8);
  const auto all = values_of(run);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].use(), TimeUse::wait);
  EXPECT_EQ(all[0].spent, 50ms);
}

TEST(TimeValues, A_timer_that_is_read_late_takes_no_more_than_its_time) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", read_site, 900, 900.002, 5).returns(8);
  EXPECT_EQ(value_of(run).spent, 50ms);
}

TEST(TimeValues, All_reads_of_an_interval_count_until_it_is_stopped) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", read_site, 10, 50, 5).returns(8);
  run.call("main", read_site, 60, 60.001, 5).returns(-1);
  run.call("main", read_site, 100.1, 100.101, 5).returns(8);
  run.call("main", timer_site, 120, 120, 5).asks_for(0);
  run.call("main", read_site, 150, 200, 5).returns(8);
  const TimeValue value = value_of(run);
  EXPECT_EQ(value.visits, 1u);
  EXPECT_EQ(value.ran_out, 1u);
  EXPECT_EQ(value.ended_early, 0u);
  EXPECT_EQ(value.spent, 40ms + 50ms);
}

TEST(TimeValues, A_timer_that_is_stopped_before_its_time_has_ended_early) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", timer_site, 20, 20, 5).asks_for(0);
  EXPECT_EQ(value_of(run).early, std::vector<Duration>{20ms});
}

TEST(TimeValues, A_timer_that_nobody_was_seen_to_read_is_not_judged) {
  auto run = one_thread();
  run.call("main", timer_site, 0, 0, 5).asks_for(50);
  run.call("main", close_site, 80, 80, 5);
  run.call("main", alarm_site, 90, 90).asks_for(5000);
  for (const TimeValue& value : values_of(run)) EXPECT_EQ(value.use(), TimeUse::not_seen);
}

TEST(TimeValues, System_libraries_are_told_from_the_project) {
  auto run = one_thread();
  run.call("main", sleep_site, 0, 10).asks_for(10).times_out();
  Trace trace = run.trace();
  const Trace* const runs[] = {&trace};
  trace.images = {{"/usr/lib/libother.so", "", false}, {"/home/me/a_test", "", true}};
  trace.sites[0].image = 0;
  trace.processes[0].executable = 1;
  EXPECT_FALSE(time_values(runs)[0].is_project);
  EXPECT_EQ(time_values(runs)[0].executable, "a_test");
  trace.sites[0].image = 1;
  EXPECT_TRUE(time_values(runs)[0].is_project);
}

TEST(TimeValues, The_lengths_of_early_ends_are_bounded) {
  auto run = one_thread();
  for (int i = 0; i < 3000; ++i) run.call("main", poll_site, i * 10, i * 10 + 1).asks_for(1000);
  EXPECT_EQ(value_of(run).ended_early, 3000u);
  EXPECT_EQ(value_of(run).early.size(), 1000u);
}

TEST(TimeValues, A_time_out_that_nothing_ended_is_quiet) {
  auto run = one_thread();
  run.call("main", wait_site, 0, 100, 7).asks_for(100).times_out();
  EXPECT_TRUE(value_of(run).is_quiet());
  run.call("main", wait_site, 200, 230, 7).asks_for(100);
  EXPECT_FALSE(value_of(run).is_quiet());
}

TEST(TimeValues, What_only_lets_time_pass_is_not_quiet) {
  for (const char* site : {sleep_site, poll_site}) {
    auto run = one_thread();
    run.call("main", site, 0, 100).asks_for(100).times_out();
    EXPECT_FALSE(value_of(run).is_quiet()) << site;
  }
  auto timer = one_thread();
  timer.call("main", timer_site, 0, 0, 5).asks_for(50);
  timer.call("main", read_site, 10, 50, 5).returns(8);
  EXPECT_FALSE(value_of(timer).is_quiet());
}

// Sleeps in a wrapper that is called at this line of the test.
void nap_at(TraceBuilder& run, int line, double begin, double asked) {
  run.call("main", sleep_site, begin, begin + asked).asks_for(asked).times_out();
  run.in("nap", "/src/a.cc", 1).called_at("Test", "/src/test.cc", line);
}

TEST(TimeValues, A_place_that_passes_on_what_its_callers_choose_names_them) {
  auto run = one_thread();
  for (const double begin : {0.0, 3000.0}) {
    nap_at(run, 10, begin, 0.1);
    nap_at(run, 20, begin + 1, 1000);
    nap_at(run, 30, begin + 1500, 20);
  }
  const TimeValue value = value_of(run);
  ASSERT_EQ(value.callers.size(), 3u);
  EXPECT_EQ(value.callers[0].location, "src/test.cc:20 in Test");
  EXPECT_EQ(value.callers[0].most, 1s);
  EXPECT_EQ(value.callers[0].visits, 2u);
  EXPECT_EQ(value.callers[0].spent, 2s);
  EXPECT_EQ(value.callers[2].least, 100us);
}

TEST(TimeValues, A_wrapper_of_a_wrapper_is_looked_through) {
  auto run = one_thread();
  for (const double begin : {0.0, 1000.0}) {
    nap_at(run, 10, begin, 1);
    for (const int line : {50, 60}) {
      run.call("main", sleep_site, begin + line, begin + 2 * line).asks_for(line).times_out();
      run.in("nap", "/src/a.cc", 1).called_at("nap_ms", "/src/a.cc", 5);
      run.called_at("Test", "/src/test.cc", line);
    }
  }
  std::vector<std::string> places;
  for (const auto& caller : value_of(run).callers) places.push_back(caller.location);
  EXPECT_EQ(places, (std::vector<std::string>{"src/test.cc:60 in Test", "src/test.cc:50 in Test",
                                              "src/test.cc:10 in Test"}));
}

TEST(TimeValues, A_time_that_is_computed_is_nobodys_choice) {
  auto growing = one_thread();
  for (const double asked : {1.0, 2.0, 4.0, 8.0}) nap_at(growing, 10, 100 * asked, asked);
  EXPECT_TRUE(value_of(growing).callers.empty());
  auto jittered = one_thread();
  for (const double asked : {10.0, 13.0, 17.0}) {
    nap_at(jittered, 10, 100 * asked, asked);
    nap_at(jittered, 20, 100 * asked + 50, asked + 1);
  }
  EXPECT_TRUE(value_of(jittered).callers.empty());
}

TEST(TimeValues, Callers_that_all_ask_for_the_same_need_not_be_told_apart) {
  auto run = one_thread();
  for (const int line : {10, 20, 10, 20}) nap_at(run, line, 100.0 * line, 5);
  EXPECT_TRUE(value_of(run).is_constant());
  EXPECT_TRUE(value_of(run).callers.empty());
}

TEST(TimeValues, Numbers_that_point_nowhere_are_passed_over) {
  auto run = one_thread();
  run.call("nobody", sleep_site, 0, 10).asks_for(10).times_out();
  run.call("nobody", socket_site, 0, 0, 5).asks_for(200);
  run.call("nobody", receive_site, 1, 2, 5).returns(1);
  run.call("main", wait_site, 20, 10).asks_for(5);
  Trace trace = run.trace();
  trace.calls.push_back(trace.calls.back());
  trace.calls.back().site = no_index;
  trace.sites[0].image = 77;
  trace.threads[0].process = 55;
  const Trace* const runs[] = {&trace};
  EXPECT_EQ(time_values(runs).size(), 3u);
  EXPECT_TRUE(time_values({}).empty());
}

}  // namespace
}  // namespace unflake
