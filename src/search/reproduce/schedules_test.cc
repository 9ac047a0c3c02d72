#include <gtest/gtest.h>

#include "search/reproduce/strategy.h"
#include "support/controlled_test.h"
#include "support/scripted_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::ControlledProgram;

// On free cores nothing happens between two steps of a thread, and nobody waits for another.
std::unique_ptr<ScriptedHunt> hunt_for(const ControlledProgram& program,
                                       const HuntOptions& options = {}) {
  return std::make_unique<ScriptedHunt>(
      [&program](const Experiment& experiment, int) {
        ExperimentResult result =
            simulated::run_controlled(program, experiment.plan.schedule.value_or(Schedule{}));
        if (experiment.plan.schedule) return result;
        auto free = std::make_shared<Trace>(*result.trace);
        free->controlled.reset();
        result.trace = free;
        return result;
      },
      options);
}

void search_all(Hunt& hunt, std::initializer_list<const char*> names) {
  std::vector<const Strategy*> chosen;
  for (const char* name : names) chosen.push_back(find_strategy(name));
  ASSERT_TRUE(hunt.prepare());
  search(hunt, chosen);
}

TEST(Schedules, find_what_no_free_run_shows_and_keep_the_schedule) {
  const ControlledProgram program = simulated::lost_update();
  const auto scripted = hunt_for(program);
  search_all(scripted->hunt, {"schedules", "guided"});
  ASSERT_EQ(1u, scripted->hunt.found().size());
  const Found& found = scripted->hunt.found()[0];
  EXPECT_EQ("schedules", found.strategy);
  ASSERT_TRUE(found.trial.plan.schedule);
  EXPECT_FALSE(found.trial.plan.schedule->decisions.empty());
  EXPECT_NE(0u, found.digest);
  EXPECT_EQ((Count{5, 5}), found.with_plan);
  EXPECT_EQ(std::nullopt, found.plausibility);
}

TEST(Schedules, say_who_waits_for_whom) {
  const ControlledProgram program = simulated::crossed_locks();
  const auto scripted = hunt_for(program);
  search_all(scripted->hunt, {"schedules"});
  ASSERT_EQ(1u, scripted->hunt.found().size());
  EXPECT_NE(std::string::npos, scripted->hunt.found()[0].trial.why.find("waits at left.cc:2"));
}

TEST(Schedules, end_the_search_for_a_test_that_passes_in_all) {
  const ControlledProgram program = simulated::locked_updates();
  const auto scripted = hunt_for(program);
  search_all(scripted->hunt, {"schedules", "guided"});
  EXPECT_TRUE(is_proven_sound(scripted->hunt));
  EXPECT_TRUE(scripted->hunt.found().empty());
  EXPECT_TRUE(scripted->hunt.coverage().sites_tried.empty());
}

TEST(Schedules, prove_nothing_of_a_test_that_waits_for_time) {
  const ControlledProgram program = simulated::late_worker(1h);
  const auto scripted = hunt_for(program);
  search_all(scripted->hunt, {"schedules"});
  EXPECT_TRUE(scripted->hunt.found().empty());
  EXPECT_FALSE(is_proven_sound(scripted->hunt));
}

TEST(Schedules, that_make_threads_late_leave_the_last_word_to_delays) {
  const ControlledProgram program = simulated::late_worker(20ms);
  const auto scripted = hunt_for(program);
  search_all(scripted->hunt, {"schedules"});
  ASSERT_EQ(1u, scripted->hunt.found().size());
  const Found& found = scripted->hunt.found()[0];
  EXPECT_TRUE(found.wants_delay());
  ASSERT_TRUE(found.slack);
  EXPECT_EQ(found.trial.plan.schedule->stall, found.slack->fails);
  EXPECT_FALSE(scripted->hunt.findings().is_enough());
  EXPECT_TRUE(scripted->hunt.findings().has_flaw());
}

TEST(Schedules, look_for_the_failure_that_is_wanted) {
  const ControlledProgram program = simulated::lost_update();
  HuntOptions options;
  options.wanted.failure = Failure{FailureKind::assertion, "other.cc", 9, "", "", ""};
  const auto scripted = hunt_for(program, options);
  search_all(scripted->hunt, {"schedules"});
  EXPECT_TRUE(scripted->hunt.found().empty());
  EXPECT_FALSE(scripted->hunt.coverage().other_failures.empty());
}

}  // namespace
}  // namespace unflake
