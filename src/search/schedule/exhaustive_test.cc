#include "search/schedule/exhaustive.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/controlled_test.h"

namespace unflake {
namespace {

using simulated::ControlledProgram;
using simulated::View;

struct Seen {
  ExhaustiveResult result;
  std::set<std::string> outcomes;
};

Seen explore(const ControlledProgram& program, std::optional<int> most_preemptions,
             uint64_t most_schedules = 10'000) {
  Seen seen;
  ExhaustiveOptions options;
  options.most_preemptions = most_preemptions;
  options.most_schedules = most_schedules;
  const auto run = [&](const Schedule& schedule) {
    return std::optional(ScheduleRun{schedule, simulated::run_controlled(program, schedule)});
  };
  seen.result = explore_all(run, options, [&](const ScheduleRun& one) {
    seen.outcomes.insert(one.controlled().deadlock.empty() ? one.result.outcome.signature
                                                           : "deadlock");
    return true;
  });
  return seen;
}

std::set<std::string> outcomes_by_force(const ControlledProgram& program, int preemptions,
                                        uint64_t& schedules) {
  const simulated::AllOutcomes all = simulated::all_outcomes(program, preemptions);
  std::set<std::string> outcomes;
  for (const auto& [outcome, count] : all.schedules_with) outcomes.insert(outcome);
  schedules = all.schedules;
  return outcomes;
}

// Two threads that read, write, lock and unlock at random, and a check of what was read.
ControlledProgram random_program(uint64_t seed) {
  std::mt19937_64 draws(seed);
  ControlledProgram program;
  for (int t = 0; t < 2; ++t) {
    auto& script = program.scripts[program.add_thread()];
    const std::string file = t == 0 ? "a.cc:" : "b.cc:";
    int line = 1;
    const auto place = [&] { return file + std::to_string(line++); };
    for (int i = 0; i < 2; ++i) {
      const std::string variable(1, static_cast<char>('x' + draws() % 3));
      switch (draws() % 4) {
        case 0:
          script.read(place(), variable);
          break;
        case 1:
          script.set(place(), variable, t + 1);
          break;
        case 2:
          script.increment(place(), variable);
          break;
        default:
          script.lock(place(), "m").increment(place(), variable).unlock(place(), "m");
      }
    }
    for (const int value : {0, 1, 2})
      script.check(place(),
                   [value](View view) { return view.own["x"] + view.own["y"] != value + 1; });
  }
  program.main()
      .spawn("main.cc:1", 1)
      .spawn("main.cc:2", 2)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  return program;
}

TEST(Exhaustive, finds_the_outcomes_of_brute_force_with_fewer_schedules) {
  uint64_t ours = 0, theirs = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const ControlledProgram program = random_program(seed);
    for (const int preemptions : {0, 1, 2}) {
      uint64_t schedules = 0;
      const auto outcomes = outcomes_by_force(program, preemptions, schedules);
      const Seen seen = explore(program, preemptions);
      EXPECT_TRUE(seen.result.is_complete);
      EXPECT_EQ(outcomes, seen.outcomes) << seed << " with " << preemptions;
      EXPECT_LE(seen.result.schedules, schedules);
      ours += seen.result.schedules;
      theirs += schedules;
    }
  }
  EXPECT_LT(ours, theirs);
}

TEST(Exhaustive, without_a_bound_makes_equal_runs_once) {
  uint64_t ours = 0, theirs = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const ControlledProgram program = random_program(seed);
    uint64_t schedules = 0;
    const auto outcomes = outcomes_by_force(program, 3, schedules);
    const Seen seen = explore(program, std::nullopt);
    EXPECT_TRUE(seen.result.is_complete);
    EXPECT_TRUE(std::ranges::includes(seen.outcomes, outcomes)) << seed;
    ours += seen.result.schedules;
    theirs += schedules;
  }
  EXPECT_LT(ours * 4, theirs);
}

TEST(Exhaustive, knows_deadlocks_and_lost_signals) {
  for (const auto& program : {simulated::crossed_locks(), simulated::missed_signal()}) {
    const Seen seen = explore(program, std::nullopt);
    EXPECT_TRUE(seen.result.is_complete);
    EXPECT_EQ((std::set<std::string>{"", "deadlock"}), seen.outcomes);
  }
  EXPECT_EQ(0u, explore(simulated::crossed_locks(), 0).outcomes.count("deadlock"));
  EXPECT_EQ(1u, explore(simulated::crossed_locks(), 1).outcomes.count("deadlock"));
}

TEST(Exhaustive, says_whether_the_bound_left_something_out) {
  EXPECT_TRUE(explore(simulated::lost_update(), 0).result.left_some_out);
  ControlledProgram one_thread;
  one_thread.main().set("main.cc:1", "x", 1).read("main.cc:2", "x");
  const Seen seen = explore(one_thread, 0);
  EXPECT_TRUE(seen.result.is_complete);
  EXPECT_FALSE(seen.result.left_some_out);
  EXPECT_EQ(1u, seen.result.schedules);
}

TEST(Exhaustive, does_not_claim_all_when_threads_outlive_main) {
  ControlledProgram program;
  program.scripts[program.add_thread()].set("late.cc:1", "x", 1);
  program.main().spawn("main.cc:1", 1);
  const Seen seen = explore(program, std::nullopt);
  EXPECT_TRUE(seen.result.is_complete);
  EXPECT_TRUE(seen.result.left_some_out);
}

TEST(Exhaustive, a_sound_program_passes_in_all_orders) {
  const Seen seen = explore(simulated::locked_updates(3), std::nullopt);
  EXPECT_TRUE(seen.result.is_complete);
  EXPECT_EQ((std::set<std::string>{""}), seen.outcomes);
}

TEST(Exhaustive, gives_up_where_there_are_too_many) {
  const Seen seen = explore(simulated::lost_update(6), std::nullopt, 50);
  EXPECT_FALSE(seen.result.is_complete);
  EXPECT_EQ(50u, seen.result.schedules);
  EXPECT_EQ("there are more schedules", seen.result.why_incomplete);
}

TEST(Exhaustive, claims_nothing_of_runs_that_do_not_repeat) {
  ControlledProgram program = simulated::lost_update();
  program.not_repeatable = "accept";
  EXPECT_FALSE(explore(program, 1).result.is_complete);
}

}  // namespace
}  // namespace unflake
