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

}  // namespace
}  // namespace unflake
