#include "search/schedule/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/controlled_test.h"

namespace unflake {
namespace {

using simulated::ControlledProgram;
using simulated::View;

RunSchedule runner_of(const ControlledProgram& program) {
  return [&program](const Schedule& schedule) {
    return std::optional(ScheduleRun{schedule, simulated::run_controlled(program, schedule)});
  };
}

// The first failing run of a random walk: as many exchanges as can be.
ScheduleRun failing_run(const ControlledProgram& program, uint64_t first_seed = 1) {
  Schedule schedule;
  schedule.sampler = Sampler::random_walk;
  for (schedule.seed = first_seed; schedule.seed < first_seed + 10'000; ++schedule.seed) {
    const auto run = runner_of(program)(schedule);
    if (run->failed()) return *run;
  }
  ADD_FAILURE() << "no failing schedule";
  return {};
}

TEST(Reduction, a_run_as_decisions_is_the_same_run) {
  const ControlledProgram program = simulated::lost_update(4);
  const ScheduleRun failing = failing_run(program);
  const auto again = runner_of(program)(as_decisions(failing));
  EXPECT_EQ(failing.controlled().digest, again->controlled().digest);
  EXPECT_EQ(failing.failure_id(), again->failure_id());
}

TEST(Reduction, one_exchange_loses_an_update) {
  const ControlledProgram program = simulated::lost_update(4);
  const Reduction reduced = reduce(runner_of(program), failing_run(program), 2000);
  EXPECT_TRUE(reduced.run.failed());
  EXPECT_EQ(1u, reduced.orders.size());
  ASSERT_EQ(1u, reduced.sentences.size());
  EXPECT_NE(std::string::npos, reduced.sentences[0].find("comes between the read at sum.cc:5"))
      << reduced.sentences[0];
}

// Between its read and its write, and not before the read either: who goes first is left open by
// one order alone.
TEST(Reduction, finds_the_orders_that_are_enough_whoever_goes_first) {
  for (const ControlledProgram& program : {simulated::lost_update(), simulated::crossed_locks()}) {
    const Reduction reduced = reduce(runner_of(program), failing_run(program), 2000);
    EXPECT_EQ(1u, reduced.orders.size());
    EXPECT_EQ(2u, reduced.enough.size());
    EXPECT_EQ(reduced.orders[0], reduced.enough[0]);
  }
}

TEST(Reduction, says_that_a_read_comes_between_two_writes) {
  const ControlledProgram program = simulated::half_reading(3);
  for (uint64_t seed = 1; seed <= 2000; seed += 100) {
    const ScheduleRun failing = failing_run(program, seed);
    const Reduction reduced = reduce(runner_of(program), failing, 2000);
    EXPECT_EQ(failing.failure_id(), reduced.run.failure_id());
    EXPECT_FALSE(reduced.orders.empty());
    EXPECT_LE(reduced.orders.size(), 3u);
    EXPECT_TRUE(std::ranges::any_of(reduced.sentences, [](const std::string& sentence) {
      return sentence.find("display.cc") != std::string::npos;
    }));
  }
}

TEST(Reduction, tells_who_waits_for_whom_in_a_deadlock) {
  const ControlledProgram program = simulated::crossed_locks();
  const Reduction reduced = reduce(runner_of(program), failing_run(program), 2000);
  EXPECT_EQ(1u, reduced.switches.size());
  const auto sentences = deadlock_sentences(reduced.run.trace());
  ASSERT_EQ(3u, sentences.size());
  EXPECT_EQ("main.cc:1#1 waits at left.cc:2:pthread_mutex_lock for main.cc:2#1", sentences[1]);
  EXPECT_EQ("main.cc:2#1 waits at right.cc:2:pthread_mutex_lock for main.cc:1#1", sentences[2]);
}

TEST(Reduction, nobody_is_left_to_signal) {
  const ControlledProgram program = simulated::missed_signal();
  const Reduction reduced = reduce(runner_of(program), failing_run(program), 2000);
  const auto sentences = deadlock_sentences(reduced.run.trace());
  ASSERT_EQ(2u, sentences.size());
  EXPECT_EQ(
      "main.cc:1#1 waits at wait.cc:2:pthread_cond_wait, and nobody is left who could end that",
      sentences[1]);
}

TEST(Reduction, keeps_what_it_has_when_it_may_not_run_anything) {
  const ControlledProgram program = simulated::lost_update();
  const ScheduleRun failing = failing_run(program);
  const Reduction reduced = reduce(runner_of(program), failing, 0);
  EXPECT_EQ(failing.controlled().digest, reduced.run.controlled().digest);
  EXPECT_FALSE(reduced.sentences.empty());
}

// A run of two threads in which `call.cc:7` is `points` points for each call.
Trace two_threads(const std::string& site, uint64_t calls, uint64_t points) {
  Trace trace;
  trace.threads.resize(2);
  trace.threads[0].name = {"main", 1, 1};
  trace.threads[1].name = {"main.cc:1#1", 11, 10};
  TracedSite there;
  there.name = *parse_site(site);
  trace.sites.push_back(there);
  trace.visits.push_back({1, 0, calls, {}});
  trace.controlled.emplace();
  trace.controlled->threads = {0, 1};
  SwitchPoint point;
  point.thread = 1;
  point.site = 0;
  trace.controlled->points.assign(calls * points, point);
  return trace;
}

OrderConstraint main_after(const std::string& site, uint64_t visit) {
  return {0, *parse_site("main.cc:5:read"), 2, 1, *parse_site(site), visit};
}

TEST(Orders, are_a_watch_and_a_hold_in_a_free_run) {
  const char* unlock = "call.cc:7:pthread_mutex_unlock";
  const auto plan = as_interventions({main_after(unlock, 3)}, two_threads(unlock, 4, 1));
  ASSERT_EQ(2u, plan.size());
  EXPECT_EQ(Intervention::Action::watch, plan[0].action);
  EXPECT_EQ(Intervention::Position::after, plan[0].position);
  EXPECT_EQ(11u, plan[0].thread.name);
  EXPECT_EQ(Intervention::Action::hold, plan[1].action);
  EXPECT_EQ("main", plan[1].thread.text);
  EXPECT_EQ(2u, plan[1].nth);
  EXPECT_EQ(3u, plan[1].count);
  EXPECT_EQ(0u, plan[1].until);
}

TEST(Orders, count_calls_and_not_the_points_of_a_call) {
  const char* unlock = "call.cc:7:pthread_mutex_unlock";
  const auto second = as_interventions({main_after(unlock, 3)}, two_threads(unlock, 4, 2));
  EXPECT_EQ(2u, second.at(1).count);
  EXPECT_EQ(Intervention::Position::after, second[0].position);
  const char* wait = "call.cc:7:pthread_cond_wait";
  const auto begun = as_interventions({main_after(wait, 1)}, two_threads(wait, 1, 2));
  EXPECT_EQ(Intervention::Position::before, begun.at(0).position);
  const auto woken = as_interventions({main_after(wait, 2)}, two_threads(wait, 1, 2));
  EXPECT_EQ(Intervention::Position::after, woken.at(0).position);
}

TEST(Orders, of_instructions_are_passed_behind_them) {
  const auto plan = as_interventions({main_after("f+0x3c", 1)}, two_threads("f+0x3c", 1, 1));
  EXPECT_EQ(Intervention::Position::after, plan.at(0).position);
  const auto line = as_interventions({main_after("call.cc:7", 1)}, two_threads("call.cc:7", 1, 1));
  EXPECT_EQ(Intervention::Position::before, line.at(0).position);
}

TEST(Orders, of_unknown_threads_are_none) {
  OrderConstraint order = main_after("call.cc:7", 1);
  order.other = 9;
  EXPECT_TRUE(as_interventions({order}, two_threads("call.cc:7", 1, 1)).empty());
}

}  // namespace
}  // namespace unflake
