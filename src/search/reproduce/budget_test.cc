#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/reproduce/strategy.h"
#include "support/scripted_hunt.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::IsEmpty;
using testing::Not;

std::vector<const Strategy*> default_strategies() {
  std::vector<const Strategy*> chosen;
  for (const Strategy& strategy : strategies())
    if (strategy.by_default) chosen.push_back(&strategy);
  return chosen;
}

HuntOptions with_budget(Duration budget) {
  HuntOptions options;
  options.budget = budget;
  return options;
}

void hunt_with_everything(Hunt& hunt) {
  if (hunt.prepare()) search(hunt, default_strategies());
}

// A worker hands something over, again and again, to a main that waits for so long each time.
Program handing_over(Duration patience, Duration work, int times = 1) {
  Program program;
  program.jitter = 1ms;
  simulated::Script& worker = program.thread();
  worker.repeat(times, [&](auto& script) {
    script.call("w.cc:20", "sched_yield").work(work).call("w.cc:21", "write");
  });
  worker.lock("w.cc:22", "m").set("done").signal("w.cc:23", "c").unlock("w.cc:24", "m");
  program.main()
      .create("w.cc:10", worker)
      .wait_for("w.cc:11", "c", patience, is_set("done"))
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker);
  return program;
}

std::string what_is_tried(Duration patience, Duration work, int times, Duration budget) {
  return fmt::format("patience {}, work {} x {}, budget {}", format_duration(patience),
                     format_duration(work), times, format_duration(budget));
}

// Profile, search, confirmation, shrinking and slack together.
TEST(Budget, Holds_in_all_phases_whatever_the_test_takes) {
  for (const Duration budget : {50ms, 1000ms, 5000ms, 10'000ms, 60'000ms, 90'000ms})
    for (const Duration patience : {10ms, 300ms, 4000ms})
      for (const Duration work : {1ms, 200ms})
        for (const int times : {1, 20}) {
          const Program program = handing_over(patience, work, times);
          SimulatedHunt simulated(program, with_budget(budget));
          hunt_with_everything(simulated.hunt);
          EXPECT_LE(simulated.hunt.runner().elapsed(), budget)
              << what_is_tried(patience, work, times, budget);
        }
}

TEST(Budget, Holds_for_tests_that_hang_when_they_are_late) {
  for (const Duration budget : {1s, 5s, 30s, 90s}) {
    ScriptedHunt scripted(
        [](const Experiment& experiment, int) {
          return longest_delay(experiment.plan) > 0ms ? hangs(experiment)
                                                      : passes(experiment, 20ms);
        },
        with_budget(budget));
    if (!scripted.hunt.prepare()) continue;
    for (int line = 1; !scripted.hunt.over() && line < 50; ++line) {
      const Trial trial = late_at(scripted.hunt, line);
      const auto seen = scripted.hunt.observe(trial);
      if (seen && seen->hit) scripted.hunt.confirm(trial, *seen);
    }
    refine(scripted.hunt);
    EXPECT_LE(scripted.hunt.runner().elapsed(), budget);
  }
}

TEST(Budget, Holds_for_a_test_that_takes_longer_than_it) {
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        return experiment.timeout < 10s ? hangs(experiment) : passes(experiment, 10s);
      },
      with_budget(3s));
  EXPECT_FALSE(scripted.hunt.prepare());
  EXPECT_LE(scripted.hunt.runner().elapsed(), 3s);
}

TEST(Budget, That_cuts_runs_short_makes_no_verdict_on_the_test) {
  for (const Duration budget : {0s, 1s, 10s}) {
    ScriptedHunt scripted(
        [](const Experiment& experiment, int) {
          return experiment.timeout < 8s ? hangs(experiment) : passes(experiment, 8s);
        },
        with_budget(budget));
    EXPECT_FALSE(scripted.hunt.prepare());
    EXPECT_FALSE(scripted.hunt.profile().always_fails);
    EXPECT_THAT(scripted.hunt.profile().runs, IsEmpty());
    EXPECT_GT(scripted.hunt.profile().cut_short, 0s);
  }
}

TEST(Budget, That_cut_a_run_short_knows_it_for_a_hang_when_others_take_far_less) {
  ScriptedHunt scripted(
      [](const Experiment& experiment, int nth) {
        return nth == 1 ? hangs(experiment) : passes(experiment, 10ms);
      },
      with_budget(60s));
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_EQ(scripted.hunt.profile().failures(), 1);
}

// A deadlock that the agent sees ends a run at once.
TEST(Budget, Is_spent_on_more_runs_where_the_first_ones_hang_and_take_no_time) {
  ScriptedHunt scripted(
      [](Experiment experiment, int nth) {
        experiment.timeout = 40ms;
        return nth <= 2 ? hangs(experiment) : passes(experiment, 10ms);
      },
      with_budget(60s));
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_FALSE(scripted.hunt.profile().always_fails);
  EXPECT_EQ(scripted.hunt.profile().failures(), 2);
}

TEST(Budget, Is_enough_to_see_that_a_test_never_stops_within_its_own_time_limit) {
  HuntOptions options = with_budget(1s);
  options.timeout = 300ms;
  ScriptedHunt scripted([](const Experiment& experiment, int) { return hangs(experiment); },
                        options);
  EXPECT_FALSE(scripted.hunt.prepare());
  EXPECT_TRUE(scripted.hunt.profile().always_fails);
  EXPECT_LE(scripted.hunt.runner().elapsed(), 1s);
}

TEST(Budget, Is_not_told_of_experiments_that_it_has_no_time_for) {
  ScriptedHunt scripted([](const Experiment& experiment, int) { return passes(experiment, 2s); },
                        with_budget(20s));
  ASSERT_TRUE(scripted.hunt.prepare());
  scripted.said.clear();
  search(scripted.hunt, default_strategies());
  EXPECT_EQ(scripted.hunt.coverage().search_runs, 0);
  for (const std::string& told : scripted.said)
    EXPECT_THAT(told, Not(testing::HasSubstr("scarce machine")));
  EXPECT_THAT(scripted.hunt.coverage().left_out, testing::Contains("shake"));
}

TEST(Budget, Is_not_said_to_leave_out_what_was_tried) {
  const Program program = handing_over(4s, 5ms);
  SimulatedHunt simulated(program, with_budget(5min));
  hunt_with_everything(simulated.hunt);
  EXPECT_THAT(simulated.hunt.coverage().left_out, Not(testing::Contains("guided")));
  EXPECT_THAT(simulated.said, testing::Contains(testing::HasSubstr("one delay per run")));
}

// A hit of a plan whose confirmation there is no time for would prove nothing.
TEST(Budget, Is_not_spent_on_what_it_could_not_confirm) {
  ScriptedHunt scripted([](const Experiment& experiment, int) { return passes(experiment, 10ms); },
                        with_budget(20s));
  ASSERT_TRUE(scripted.hunt.prepare());
  const auto seen = scripted.hunt.observe(late_at(scripted.hunt, 1, 8s));
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->hit);
  EXPECT_EQ(scripted.hunt.coverage().search_runs, 0);
  EXPECT_EQ(scripted.hunt.coverage().unaffordable, 1);
  EXPECT_GE(scripted.hunt.coverage().longest_unaffordable, 48s);
  EXPECT_TRUE(scripted.hunt.observe(late_at(scripted.hunt, 1, 2s))->fired);
}

TEST(Budget, Leaves_time_for_the_slack_of_what_was_found_early) {
  const Program program = handing_over(30ms, 1ms);
  SimulatedHunt simulated(program, with_budget(10s));
  hunt_with_everything(simulated.hunt);
  ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
  const Found& found = simulated.hunt.found()[0];
  ASSERT_TRUE(found.slack);
  EXPECT_GT(found.slack->passes, 20ms);
  EXPECT_LE(simulated.hunt.runner().elapsed(), 10s);
}

TEST(Verdict, Calls_a_generous_time_out_a_margin) {
  const Program program = handing_over(4s, 5ms);
  SimulatedHunt simulated(program, with_budget(5min));
  hunt_with_everything(simulated.hunt);
  ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
  for (const Found& found : simulated.hunt.found()) {
    EXPECT_EQ(found.plausibility, Plausibility::margin);
    EXPECT_TRUE(found.is_margin());
    EXPECT_GT(found.slack->passes, 1s);
  }
  EXPECT_FALSE(simulated.hunt.findings().has_flaw());
}

TEST(Verdict, Calls_a_short_time_out_a_flaw_and_one_between_a_risk) {
  for (const auto& [patience, expected] :
       {std::pair(15ms, Plausibility::flaw), std::pair(400ms, Plausibility::risk)}) {
    const Program program = handing_over(patience, 1ms);
    SimulatedHunt simulated(program, with_budget(5min));
    hunt_with_everything(simulated.hunt);
    ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
    EXPECT_EQ(simulated.hunt.found()[0].plausibility, expected);
    EXPECT_TRUE(simulated.hunt.findings().has_flaw());
  }
}

TEST(Verdict, Is_not_known_when_nobody_measured_how_little_is_enough) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    return longest_delay(experiment.plan) > 0ms ? fails(experiment, 10ms)
                                                : passes(experiment, 10ms);
  });
  ASSERT_TRUE(scripted.hunt.prepare());
  for (const auto& [delay, expected] : {std::pair(20ms, std::optional(Plausibility::flaw)),
                                        std::pair(400ms, std::optional<Plausibility>()),
                                        std::pair(6000ms, std::optional<Plausibility>())}) {
    Found found;
    found.trial = late_at(scripted.hunt, 1, delay);
    scripted.hunt.findings().judge(found);
    EXPECT_EQ(found.plausibility, expected);
  }
}

TEST(Verdict, Is_measured_against_what_the_machine_shows) {
  const Program program = handing_over(400ms, 1ms);
  HuntOptions options = with_budget(5min);
  int asked = 0;
  options.measure_lateness = [&] {
    ++asked;
    return MachineLateness{10ms, 230ms};
  };
  SimulatedHunt simulated(program, options);
  hunt_with_everything(simulated.hunt);
  ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
  EXPECT_EQ(simulated.hunt.found()[0].plausibility, Plausibility::flaw);
  EXPECT_EQ(simulated.hunt.found()[0].machine_lateness, (MachineLateness{10ms, 230ms}));
  EXPECT_EQ(asked, 1);
}

TEST(Verdict, Finds_the_margin_that_somebody_asks_for_and_accuses) {
  const Program program = handing_over(4s, 5ms);
  HuntOptions options = with_budget(5min);
  options.wanted.failure = failure_at("w.cc", 12);
  SimulatedHunt simulated(program, options);
  hunt_with_everything(simulated.hunt);
  ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
  EXPECT_EQ(simulated.hunt.found()[0].plausibility, Plausibility::margin);
  EXPECT_FALSE(simulated.hunt.found()[0].is_margin());
}

TEST(Verdict, Believes_what_history_has_seen) {
  const Program program = handing_over(4s, 5ms);
  HuntOptions options = with_budget(5min);
  options.known_signatures = {signature_of(failure_at("/project/w.cc", 12))};
  SimulatedHunt simulated(program, options);
  hunt_with_everything(simulated.hunt);
  ASSERT_THAT(simulated.hunt.found(), Not(IsEmpty()));
  EXPECT_FALSE(simulated.hunt.found()[0].is_margin());
}

// The same check fails when the worker is late by seconds and when main is by milliseconds.
TEST(Verdict, Prefers_the_plan_that_takes_less) {
  HuntOptions options;
  options.budget = 100h;
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        const auto& late = experiment.plan.interventions;
        const bool is_bad =
            !late.empty() && late[0].duration > (late[0].site.line == 1 ? 4s : 20ms);
        return is_bad ? fails(experiment, 10ms) : passes(experiment, 10ms);
      },
      options);
  ASSERT_TRUE(scripted.hunt.prepare());
  for (const Trial& trial : {late_at(scripted.hunt, 1, 6s), late_at(scripted.hunt, 2, 100ms)}) {
    const auto seen = scripted.hunt.observe(trial);
    ASSERT_TRUE(seen && seen->hit);
    ASSERT_TRUE(scripted.hunt.confirm(trial, *seen));
  }
  refine(scripted.hunt);
  ASSERT_EQ(scripted.hunt.found().size(), 1u);
  EXPECT_EQ(scripted.hunt.found()[0].plausibility, Plausibility::flaw);
  EXPECT_FALSE(scripted.hunt.observe(late_at(scripted.hunt, 3, 100ms))->hit);
}

TEST(Verdict, Takes_what_a_scarce_machine_shows_for_a_flaw_or_a_risk) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    return experiment.conditions.cpu_share < 0.3 ? fails(experiment, 10ms)
                                                 : passes(experiment, 10ms);
  });
  ASSERT_TRUE(scripted.hunt.prepare());
  search_shake(scripted.hunt);
  refine(scripted.hunt);
  ASSERT_THAT(scripted.hunt.found(), Not(IsEmpty()));
  EXPECT_EQ(scripted.hunt.found()[0].plausibility, Plausibility::risk);
}

}  // namespace
}  // namespace unflake
