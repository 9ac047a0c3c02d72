#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "search/reproduce/strategy.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::string place(int line) {
  return "calls.cc:" + std::to_string(line);
}

// A worker makes some calls and sets a flag, and makes some more; main looks at the flag after
// one second. Only a worker that is late before the flag makes it fail.
Program one_culprit(int calls_after) {
  Program program;
  simulated::Script& worker = program.thread();
  worker.call("calls.cc:50", "sched_yield").set("done");
  for (int i = 0; i < calls_after; ++i) worker.call(place(100 + i), "sched_yield");
  program.main()
      .create("calls.cc:10", worker)
      .work(1s)
      .check("calls.cc:12", is_set("done"))
      .join("calls.cc:13", worker);
  return program;
}

// Fails only when both workers are late. The first one has a call more, because it is ahead by what
// makes main late before it starts the second.
Program two_needed() {
  Program program;
  simulated::Script& first = program.thread();
  simulated::Script& second = program.thread();
  first.call("calls.cc:50", "sched_yield").call("calls.cc:51", "sched_yield").set("first");
  second.call("calls.cc:60", "sched_yield").set("second");
  program.main()
      .create("calls.cc:10", first)
      .create("calls.cc:11", second)
      .work(1s)
      .check("calls.cc:13",
             [](const auto& state) { return state.is_set("first") || state.is_set("second"); })
      .join("calls.cc:14", first)
      .join("calls.cc:15", second);
  return program;
}

// Fails at either of two lines.
Program two_failures() {
  Program program;
  simulated::Script& first = program.thread();
  simulated::Script& second = program.thread();
  first.call("calls.cc:50", "sched_yield").set("first");
  second.call("calls.cc:60", "sched_yield").set("second");
  program.main()
      .create("calls.cc:10", first)
      .work(1s)
      .check("calls.cc:12", is_set("first"))
      .join("calls.cc:13", first)
      .create("calls.cc:20", second)
      .work(1s)
      .check("calls.cc:22", is_set("second"))
      .join("calls.cc:23", second);
  return program;
}

// Whatever is late, main waits for it.
Program correct() {
  Program program;
  simulated::Script& worker = program.thread();
  worker.call("calls.cc:50", "sched_yield").set("done");
  program.main()
      .create("calls.cc:10", worker)
      .join("calls.cc:11", worker)
      .check("calls.cc:12", is_set("done"));
  return program;
}

HuntOptions looking_for_call(int line) {
  HuntOptions options;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = "/project/calls.cc";
  failure.line = line;
  options.wanted.failure = failure;
  options.wanted.signature = signature_of(failure);
  return options;
}

HuntOptions with_much_time() {
  HuntOptions options;
  options.budget = 100h;
  return options;
}

TEST(Bisection, Finds_the_one_place_that_matters) {
  const Program program = one_culprit(28);
  SimulatedHunt hunt(program, looking_for_call(12));
  hunt.search(search_bisection);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_THAT(hunt.places(), ElementsAre("calls.cc:50:sched_yield@calls.cc:10#1"));
  EXPECT_GE(hunt.hunt.found()[0].with_plan.hits, 3);
}

TEST(Bisection, Needs_two_runs_for_each_halving) {
  for (const int calls : {0, 4, 28, 124, 252}) {
    const Program program = one_culprit(calls);
    HuntOptions options = looking_for_call(12);
    options.budget = 100h;
    SimulatedHunt hunt(program, options);
    hunt.search(search_bisection);
    EXPECT_LE(hunt.hunt.coverage().search_runs, 1 + 2 * std::ceil(std::log2(calls + 3))) << calls;
    EXPECT_THAT(hunt.hunt.found(), SizeIs(1));
  }
}

TEST(Bisection, Shortens_delays_that_the_budget_has_no_room_for) {
  const Program program = one_culprit(252);
  SimulatedHunt hunt(program, looking_for_call(12));
  hunt.search(search_bisection);
  EXPECT_LT(hunt.executor.started().back().plan.interventions.front().duration, 1s);
  EXPECT_LT(hunt.executor.elapsed(), 5min);
}

TEST(Bisection, Explores_nothing_below_what_passes) {
  const Program program = correct();
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_bisection);
  EXPECT_EQ(hunt.hunt.coverage().search_runs, 1);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
}

// When all are late alike nothing changes, and bisection looks no further: that is its limit.
TEST(Bisection, Does_not_find_what_equal_delays_hide) {
  Program program;
  simulated::Script& worker = program.thread();
  worker.call("calls.cc:50", "sched_yield").set("done");
  program.main()
      .create("calls.cc:10", worker)
      .sleep("calls.cc:11", 1s)
      .check("calls.cc:12", is_set("done"))
      .join("calls.cc:13", worker);
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_bisection);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
  hunt.search(search_one_by_one);
  EXPECT_THAT(hunt.hunt.found(), SizeIs(1));
}

TEST(Bisection, Keeps_both_halves_when_the_failure_needs_both) {
  const Program program = two_needed();
  SimulatedHunt hunt(program, looking_for_call(13));
  hunt.search(search_bisection);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_TRUE(hunt.places().contains("calls.cc:50:sched_yield@calls.cc:10#1"));
  EXPECT_TRUE(hunt.places().contains("calls.cc:60:sched_yield@calls.cc:11#1"));
}

TEST(Bisection, Finds_the_failure_that_is_wanted_among_others) {
  const Program program = two_failures();
  SimulatedHunt hunt(program, looking_for_call(22));
  hunt.search(search_bisection);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_EQ(hunt.hunt.found()[0].outcome.failures.back().line, 22);
}

TEST(OneByOne, Finds_every_failure_with_one_place_each) {
  const Program program = two_failures();
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_one_by_one);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(2));
  EXPECT_THAT(hunt.places(0), ElementsAre("calls.cc:50:sched_yield@calls.cc:10#1"));
  EXPECT_THAT(hunt.places(1), ElementsAre("calls.cc:60:sched_yield@calls.cc:20#1"));
}

TEST(OneByOne, Tries_each_place_once) {
  const Program program = one_culprit(20);
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_one_by_one);
  EXPECT_EQ(hunt.hunt.coverage().search_runs, 23);
  EXPECT_THAT(hunt.hunt.found(), SizeIs(1));
}

TEST(OneByOne, Does_not_find_what_needs_two) {
  const Program program = two_needed();
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_one_by_one);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
}

TEST(OneByOne, Stops_at_what_was_wanted) {
  const Program program = one_culprit(20);
  SimulatedHunt hunt(program, looking_for_call(12));
  hunt.search(search_one_by_one);
  EXPECT_LT(hunt.hunt.coverage().search_runs, 23);
}

TEST(OneByOne, Keeps_to_the_budget) {
  const Program program = one_culprit(200);
  HuntOptions options;
  options.budget = 60s;
  SimulatedHunt hunt(program, options);
  hunt.search(search_one_by_one);
  EXPECT_LT(hunt.executor.elapsed(), 90s);
}

TEST(Ddmin, Finds_the_one_place_that_matters) {
  const Program program = one_culprit(28);
  SimulatedHunt hunt(program, looking_for_call(12));
  hunt.search(search_ddmin);
  EXPECT_THAT(hunt.places(), ElementsAre("calls.cc:50:sched_yield@calls.cc:10#1"));
}

TEST(Ddmin, Finds_the_two_places_that_are_needed_together) {
  const Program program = two_needed();
  SimulatedHunt hunt(program, looking_for_call(13));
  hunt.search(search_ddmin);
  EXPECT_THAT(hunt.places(), UnorderedElementsAre(EndsWith("@calls.cc:10#1"),
                                                  "calls.cc:60:sched_yield@calls.cc:11#1"));
}

TEST(Ddmin, Asks_once_about_what_passes) {
  const Program program = correct();
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_ddmin);
  EXPECT_EQ(hunt.hunt.coverage().search_runs, 1);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
}

TEST(Pairs, Finds_what_needs_two_late_threads) {
  const Program program = two_needed();
  SimulatedHunt hunt(program, looking_for_call(13));
  hunt.search(search_pairs);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_THAT(hunt.hunt.found()[0].trial.plan.interventions, SizeIs(2));
  EXPECT_LE(hunt.hunt.coverage().search_runs, 3) << "the starts of both threads come first";
}

TEST(Pairs, Tries_one_delay_twice_as_long_as_the_other) {
  Program program;
  simulated::Script& first = program.thread();
  simulated::Script& second = program.thread();
  first.call("calls.cc:50", "sched_yield").set("first");
  second.call("calls.cc:60", "sched_yield").check("calls.cc:61", [](const auto& state) {
    return !state.is_set("first") || state.now < 1s;
  });
  program.main()
      .create("calls.cc:10", first)
      .create("calls.cc:11", second)
      .sleep("calls.cc:12", 1s)
      .join("calls.cc:13", first)
      .join("calls.cc:14", second);
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_pairs);
  EXPECT_THAT(hunt.hunt.found(), SizeIs(1));
}

TEST(Pairs, Finds_nothing_in_a_correct_program_and_ends) {
  const Program program = correct();
  SimulatedHunt hunt(program, with_much_time());
  hunt.search(search_pairs);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
  EXPECT_LE(hunt.hunt.coverage().search_runs, 180);
}

TEST(DelayStrategies, Report_nothing_of_a_correct_program_that_fails_by_itself) {
  Program program = correct();
  program.failure_rate = 0.2;
  for (const auto search : {search_bisection, search_one_by_one, search_ddmin, search_pairs}) {
    for (program.seed = 1; program.seed <= 5; ++program.seed) {
      SimulatedHunt hunt(program);
      hunt.search(search);
      EXPECT_THAT(hunt.hunt.found(), IsEmpty()) << program.seed;
    }
  }
}

TEST(DelayStrategies, Say_what_they_try) {
  const Program program = one_culprit(3);
  for (const auto search : {search_bisection, search_one_by_one, search_ddmin, search_pairs}) {
    SimulatedHunt hunt(program);
    hunt.search(search);
    EXPECT_THAT(hunt.said, SizeIs(testing::Ge(2)));
  }
}

}  // namespace
}  // namespace unflake
