#include "search/reproduce/foresight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/reproduce/strategy.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::Script;
using simulated::SimulatedHunt;

// The test sleeps instead of waiting for the result.
Program guessing_program(Duration guess) {
  Program program;
  program.bears_control = true;
  Script& worker = program.thread();
  worker.lock("worker.cc:3", "m").work(1ms).set("result").unlock("worker.cc:5", "m");
  program.main()
      .create("test.cc:10", worker)
      .sleep("test.cc:11", guess)
      .check("test.cc:12", is_set("result"))
      .join("test.cc:13", worker);
  return program;
}

Program joining_program() {
  Program program;
  program.bears_control = true;
  Script& worker = program.thread();
  worker.sleep("worker.cc:3", 1ms).set("result");
  program.main()
      .create("test.cc:10", worker)
      .join("test.cc:11", worker)
      .check("test.cc:12", is_set("result"));
  return program;
}

void search_by(Hunt& hunt, std::initializer_list<const char*> names) {
  std::vector<const Strategy*> chosen;
  for (const char* name : names) chosen.push_back(find_strategy(name));
  ASSERT_TRUE(hunt.prepare());
  search(hunt, chosen);
}

TEST(Foresight, Lateness_is_tried_under_control_and_confirmed_on_free_cores) {
  const Program program = guessing_program(50ms);
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness"});
  ASSERT_EQ(simulated.hunt.found().size(), 1u);
  const Found& found = simulated.hunt.found()[0];
  EXPECT_EQ(found.strategy, "lateness");
  EXPECT_FALSE(found.trial.plan.schedule);
  EXPECT_TRUE(found.is_reliable());
  ASSERT_TRUE(found.slack);
  EXPECT_GT(found.slack->fails, 40ms);
  EXPECT_LT(found.slack->fails, 60ms);
}

// The worker may be 60 ms late for the check, but the test only 20 ms for the offer.
TEST(Foresight, Of_several_ways_to_fail_the_one_that_takes_least_is_kept) {
  Program program;
  program.bears_control = true;
  Script& worker = program.thread();
  worker.sleep("worker.cc:3", 20ms)
      .lock("worker.cc:4", "m")
      .change([](auto& state) { state["result"] = state["asked"]; })
      .unlock("worker.cc:6", "m");
  program.main()
      .create("test.cc:10", worker)
      .lock("test.cc:11", "m")
      .set("asked")
      .unlock("test.cc:12", "m")
      .sleep("test.cc:13", 80ms)
      .check("test.cc:14", is_set("result"))
      .join("test.cc:15", worker);
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness"});
  ASSERT_EQ(simulated.hunt.found().size(), 1u);
  const Found& found = simulated.hunt.found()[0];
  EXPECT_EQ(found.trial.plan.interventions[0].thread.text, "main");
  ASSERT_TRUE(found.slack);
  EXPECT_LT(found.slack->fails, 30ms);
}

TEST(Foresight, A_test_that_does_not_bear_control_is_left_to_other_strategies) {
  Program program = guessing_program(50ms);
  program.bears_control = false;
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness", "more-lateness"});
  EXPECT_TRUE(simulated.hunt.found().empty());
  EXPECT_EQ(simulated.hunt.coverage().search_runs, 0);
  EXPECT_FALSE(simulated.hunt.coverage().was_late_under_control);
}

TEST(Foresight, A_failure_that_control_alone_shows_is_not_kept_as_a_delay) {
  const Program late = guessing_program(50ms), sound = joining_program();
  MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
    if (!experiment.plan.schedule) return simulated::run(sound, experiment, nth);
    return simulated::under_control(simulated::run(late, experiment, nth));
  }));
  EventStream events;
  Hunt hunt(executor, simulated::test_of(late), {}, events);
  search_by(hunt, {"lateness"});
  EXPECT_TRUE(hunt.found().empty());
}

// Who asks too late gets no answer, and the test waits for one as long as it can.
TEST(Foresight, A_failure_that_the_test_waits_long_for_is_given_the_time_on_free_cores) {
  Program program;
  program.bears_control = true;
  Script& worker = program.thread();
  worker.lock("worker.cc:3", "m")
      .change([](auto& state) { state["answered"] = !state["closed"]; })
      .signal("worker.cc:5", "c")
      .unlock("worker.cc:6", "m");
  program.main()
      .create("test.cc:10", worker)
      .sleep("test.cc:11", 50ms)
      .lock("test.cc:12", "m")
      .set("closed")
      .unlock("test.cc:13", "m")
      .wait_for("test.cc:14", "c", 20s, is_set("answered"))
      .check("test.cc:15", is_set("answered"))
      .join("test.cc:16", worker);
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness"});
  ASSERT_EQ(simulated.hunt.found().size(), 1u);
  EXPECT_EQ(simulated.hunt.found()[0].outcome.kind, OutcomeKind::fail);
  EXPECT_THAT(simulated.said, testing::Not(testing::Contains(testing::HasSubstr("hang"))));
}

// On free cores every fourth late run passes: something else has its say there.
TEST(Foresight, What_free_cores_leave_to_chance_is_replayed_under_control) {
  const Program late = guessing_program(50ms), sound = joining_program();
  int late_runs = 0;
  MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
    if (experiment.plan.schedule)
      return simulated::under_control(simulated::run(late, experiment, nth));
    const bool is_late = !experiment.plan.interventions.empty();
    return simulated::run(is_late && ++late_runs % 4 == 3 ? sound : late, experiment, nth);
  }));
  EventStream events;
  Hunt hunt(executor, simulated::test_of(late), {}, events);
  search_by(hunt, {"lateness"});
  ASSERT_EQ(hunt.found().size(), 1u);
  const Found& found = hunt.found()[0];
  EXPECT_GT(found.with_plan.misses(), 0);
  EXPECT_EQ(found.under_control, (Count{5, 5}));
  EXPECT_FALSE(found.trial.plan.schedule) << "the plan is the one of free cores";
}

TEST(Foresight, What_always_comes_on_free_cores_is_replayed_there) {
  const Program program = guessing_program(50ms);
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness"});
  ASSERT_EQ(simulated.hunt.found().size(), 1u);
  EXPECT_EQ(simulated.hunt.found()[0].under_control, std::nullopt);
}

TEST(Foresight, What_is_covered_under_control_is_not_tried_again_where_nobody_knows_of_a_failure) {
  const Program program = joining_program();
  SimulatedHunt simulated(program);
  search_by(simulated.hunt, {"lateness", "more-lateness", "pairs", "bisection", "shake"});
  EXPECT_TRUE(simulated.hunt.coverage().was_late_under_control);
  EXPECT_TRUE(is_covered_under_control(simulated.hunt));
  EXPECT_GT(simulated.hunt.coverage().fired_runs, 0);
  EXPECT_EQ(simulated.hunt.coverage().late.runs, 0) << "under control they are no sample";
  EXPECT_THAT(simulated.hunt.coverage().not_needed,
              testing::ElementsAre("pairs", "bisection", "shake"));
  EXPECT_THAT(simulated.said, testing::Not(testing::Contains(testing::HasSubstr("scarce"))));
}

TEST(Foresight, A_failure_that_somebody_has_seen_is_worth_all_strategies) {
  const Program program = joining_program();
  HuntOptions options;
  options.wanted.failure = Failure{FailureKind::assertion, "test.cc", 12, "", "", ""};
  SimulatedHunt simulated(program, options);
  search_by(simulated.hunt, {"lateness", "more-lateness", "pairs"});
  EXPECT_TRUE(simulated.hunt.coverage().was_late_under_control);
  EXPECT_FALSE(is_covered_under_control(simulated.hunt));
}

// Under control the test hangs when the worker is late; on free cores it does not, alone or with
// others.
TEST(Foresight, What_free_cores_refute_is_not_tried_in_company) {
  const Program sound = joining_program();
  int controlled = 0, late_free_runs = 0;
  MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
    ExperimentResult result = simulated::run(sound, experiment, nth);
    const auto& all = experiment.plan.interventions;
    late_free_runs += !experiment.plan.schedule && !all.empty();
    if (!experiment.plan.schedule) return result;
    ++controlled;
    const bool is_worker_late =
        std::ranges::any_of(all, [](const Intervention& one) { return one.thread.text != "main"; });
    if (is_worker_late) result.outcome.kind = OutcomeKind::timeout;
    return simulated::under_control(std::move(result));
  }));
  EventStream events;
  Hunt hunt(executor, simulated::test_of(sound), {}, events);
  search_by(hunt, {"lateness", "more-lateness"});
  EXPECT_TRUE(hunt.found().empty());
  EXPECT_TRUE(hunt.coverage().was_late_under_control);
  EXPECT_GT(controlled, 5);
  EXPECT_LE(late_free_runs, 6) << "once for each place of the worker, and not for each pair";
}

}  // namespace
}  // namespace unflake
