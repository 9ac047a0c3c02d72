#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/reproduce/strategy.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

HuntOptions with_time(Duration budget) {
  HuntOptions options;
  options.budget = budget;
  return options;
}

// Main gives the worker's computation as much time as this.
Program computing(Duration work, Duration patience) {
  Program program;
  simulated::Script& worker = program.thread();
  worker.work(work).set("done");
  program.main()
      .create("work.cc:10", worker)
      .sleep("work.cc:11", patience)
      .check("work.cc:12", is_set("done"))
      .join("work.cc:13", worker);
  return program;
}

TEST(Rerun, Tells_the_rate_and_reproduces_nothing) {
  Program program = computing(1ms, 10ms);
  program.failure_rate = 0.3;
  SimulatedHunt hunt(program, with_time(5s));
  hunt.search(search_rerun);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
  EXPECT_EQ(hunt.hunt.runner().counted(TrialEnded::Purpose::confirm).runs, 0);
  EXPECT_GT(hunt.hunt.coverage().search_runs, 300);
  EXPECT_THAT(hunt.said, Contains(HasSubstr("plain runs showed it")));
}

TEST(Shake, Finds_a_computation_that_takes_too_long_on_a_busy_machine) {
  const Program program = computing(5ms, 40ms);
  SimulatedHunt hunt(program, with_time(60s));
  hunt.search(search_shake);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  const Found& found = hunt.hunt.found()[0];
  EXPECT_THAT(found.trial.plan.interventions, IsEmpty());
  EXPECT_FALSE(found.trial.conditions == Conditions());
}

TEST(Shake, Takes_the_mildest_conditions_that_are_enough) {
  const Program program = computing(25ms, 40ms);
  SimulatedHunt hunt(program, with_time(60s));
  hunt.search(search_shake);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_EQ(hunt.hunt.found()[0].trial.conditions, (Conditions{true, 1, 0}));
}

TEST(Shake, Does_not_shake_what_has_time_enough) {
  const Program program = computing(1ms, 1s);
  SimulatedHunt hunt(program, with_time(10min));
  hunt.search(search_shake);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
  EXPECT_EQ(hunt.hunt.coverage().search_runs, 8 * 5);
}

}  // namespace
}  // namespace unflake
