#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "search/reproduce/strategy.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// A worker computes without calling anything that could be delayed.
Program silent_worker() {
  Program program;
  simulated::Script& worker = program.thread();
  worker.enter("compute")
      .line("work.cc:20")
      .work(1ms)
      .line("work.cc:21")
      .set("done")
      .line("work.cc:22")
      .line("work.cc:23");
  program.main()
      .enter("set_up")
      .work(1ms)
      .create("work.cc:10", worker)
      .enter("check")
      .sleep("work.cc:11", 300ms)
      .check("work.cc:12", is_set("done"))
      .join("work.cc:13", worker);
  return program;
}

// Both threads add one to a plain variable, without a lock.
void bump(simulated::Script& script, const std::string& own) {
  script.enter("bump")
      .line("count.cc:20")
      .change([own](auto& state) { state[own] = state["count"]; })
      .line("count.cc:21")
      .change([own](auto& state) { state["count"] = state[own] + 1; });
}

Program lost_update_of_two() {
  Program program;
  simulated::Script& first = program.thread();
  simulated::Script& second = program.thread();
  bump(first, "first");
  second.work(10ms);
  bump(second, "second");
  program.main()
      .create("count.cc:10", first)
      .create("count.cc:11", second)
      .join("count.cc:12", first)
      .join("count.cc:13", second)
      .check("count.cc:14", [](const auto& state) { return state.values.at("count") == 2; });
  return program;
}

TEST(ConcurrentFunctions, Are_those_executed_while_another_thread_lives) {
  const Program program = silent_worker();
  SimulatedHunt hunt(program);
  ASSERT_TRUE(hunt.hunt.prepare());
  std::map<std::string, ConcurrentFunction> by_name;
  for (const ConcurrentFunction& function : find_concurrent_functions(hunt.hunt))
    by_name[function.entries.at(0).site.function] = function;
  EXPECT_TRUE(by_name.contains("check"));
  ASSERT_TRUE(by_name.contains("compute"));
  EXPECT_EQ(by_name["compute"].entries[0].thread.text, "work.cc:10#1");
  EXPECT_THAT(by_name["compute"].lines, ElementsAre(20, 21, 22, 23));
}

// It was entered before there were others, and stands on the stack of its later calls.
TEST(ConcurrentFunctions, Include_one_that_was_entered_before_the_others_began) {
  const Program program = silent_worker();
  SimulatedHunt hunt(program);
  ASSERT_TRUE(hunt.hunt.prepare());
  std::vector<std::string> names;
  for (const ConcurrentFunction& function : find_concurrent_functions(hunt.hunt))
    names.push_back(function.entries.at(0).site.function);
  EXPECT_THAT(names, Contains("set_up"));
}

TEST(ConcurrentFunctions, Have_an_entry_for_each_thread) {
  const Program program = lost_update_of_two();
  SimulatedHunt hunt(program);
  ASSERT_TRUE(hunt.hunt.prepare());
  const auto functions = find_concurrent_functions(hunt.hunt);
  ASSERT_THAT(functions, SizeIs(1));
  EXPECT_THAT(functions[0].entries, SizeIs(2));
}

TEST(Functions, Find_the_last_line_before_which_a_worker_must_not_be_late) {
  const Program program = silent_worker();
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_THAT(hunt.places(), ElementsAre("work.cc:21@work.cc:10#1"));
}

TEST(Functions, Double_the_delay_until_it_is_enough) {
  const Program program = silent_worker();
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_EQ(hunt.hunt.found()[0].trial.plan.interventions[0].duration, 400ms);
}

TEST(Functions, Find_a_race_between_two_lines_of_one_function) {
  const Program program = lost_update_of_two();
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_THAT(hunt.places(), ElementsAre("count.cc:21@count.cc:10#1"));
}

// The worker is late enough only when most of its many functions are.
TEST(Functions, Replace_many_short_delays_by_a_long_one) {
  Program program;
  simulated::Script& worker = program.thread();
  for (int i = 0; i < 20; ++i) worker.enter("part" + std::to_string(i));
  worker.set("done");
  program.main()
      .create("work.cc:10", worker)
      .sleep("work.cc:11", 1500ms)
      .check("work.cc:12", is_set("done"))
      .join("work.cc:13", worker);
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  ASSERT_THAT(hunt.hunt.found(), SizeIs(1));
  EXPECT_THAT(hunt.places(), ElementsAre(StartsWith("part")));
}

TEST(Functions, Report_nothing_when_every_thread_is_waited_for) {
  Program program;
  simulated::Script& worker = program.thread();
  worker.enter("compute").line("work.cc:20").work(1ms).line("work.cc:21").set("done");
  program.main()
      .create("work.cc:10", worker)
      .join("work.cc:11", worker)
      .check("work.cc:12", is_set("done"));
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  EXPECT_THAT(hunt.hunt.found(), IsEmpty());
}

TEST(Functions, Have_nothing_to_delay_in_a_single_thread) {
  Program program;
  program.main().enter("alone").line("work.cc:1").work(1ms);
  SimulatedHunt hunt(program);
  hunt.search(search_functions);
  EXPECT_EQ(hunt.hunt.coverage().search_runs, 0);
  EXPECT_THAT(hunt.said.back(), StartsWith("no function"));
}

}  // namespace
}  // namespace unflake
