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
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::SizeIs;

HuntOptions looking_for(int line) {
  HuntOptions options;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = "/project/w.cc";
  failure.line = line;
  options.wanted.failure = failure;
  options.wanted.signature = signature_of(failure);
  return options;
}

// How many runs the search needed; -1 when it found nothing.
int runs_until_found(const Program& program, const HuntOptions& options) {
  SimulatedHunt simulated(program, options);
  simulated.search(search_guided);
  return simulated.hunt.found().empty() ? -1 : simulated.hunt.found()[0].search_runs;
}

#define EXPECT_FOUND_WITHIN(most, program, line)                   \
  do {                                                             \
    const int runs = runs_until_found(program, looking_for(line)); \
    EXPECT_GE(runs, 1) << "not found";                             \
    EXPECT_LE(runs, most);                                         \
  } while (false)

Program async_wait() {
  Program program;
  Script& worker = program.thread();
  worker.work(5ms).lock("w.cc:20", "m").set("done").unlock("w.cc:22", "m");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", 100ms)
      .lock("w.cc:12", "m")
      .check("w.cc:13", is_set("done"))
      .unlock("w.cc:14", "m")
      .join("w.cc:15", worker);
  return program;
}

TEST(Guided, Finds_a_sleep_that_is_taken_for_a_wait) {
  const Program program = async_wait();
  EXPECT_FOUND_WITHIN(2, program, 13);
}

TEST(Guided, Finds_it_without_knowing_what_to_look_for) {
  const Program program = async_wait();
  EXPECT_GE(runs_until_found(program, {}), 1);
}

// The waiter is woken and looks at the condition only once, after somebody else has changed it.
TEST(Guided, Finds_a_woken_thread_that_comes_too_late) {
  Program program;
  Script& waiter = program.thread();
  waiter.wait("w.cc:20", "c").check("w.cc:21", is_set("item")).set("item", 0);
  program.main()
      .create("w.cc:10", waiter)
      .work(5ms)
      .set("item")
      .signal("w.cc:12", "c")
      .sleep("w.cc:13", 50ms)
      .set("item", 0)
      .join("w.cc:15", waiter);
  EXPECT_FOUND_WITHIN(8, program, 21);
}

// The flag is not looked at again before the wait: a signal that comes first is lost.
TEST(Guided, Finds_a_wait_that_begins_after_its_signal) {
  Program program;
  Script& waiter = program.thread();
  waiter.wait_for("w.cc:20", "c", 2s).check("w.cc:21", [](const auto& state) {
    return !state.is_set("c timed out");
  });
  program.main()
      .create("w.cc:10", waiter)
      .sleep("w.cc:11", 20ms)
      .signal("w.cc:12", "c")
      .join("w.cc:13", waiter);
  EXPECT_FOUND_WITHIN(4, program, 21);
}

// The worker uses what main sets only after it has created it.
TEST(Guided, Finds_a_thread_that_is_quicker_than_its_creator) {
  Program program;
  Script& worker = program.thread();
  worker.work(5ms).call("w.cc:20", "sched_yield").check("w.cc:21", is_set("ready"));
  program.main().create("w.cc:10", worker).set("ready").join("w.cc:12", worker);
  EXPECT_FOUND_WITHIN(6, program, 21);
}

TEST(Guided, Finds_a_thread_that_begins_too_late) {
  Program program;
  Script& worker = program.thread();
  worker.set("started");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", 50ms)
      .check("w.cc:12", is_set("started"))
      .join("w.cc:13", worker);
  const int most = 2;
  EXPECT_FOUND_WITHIN(most, program, 12);
}

TEST(Guided, Finds_a_single_thread_that_measures_its_own_time) {
  Program program;
  program.main().work(1ms).sleep("w.cc:10", 50ms).check("w.cc:11", [](const auto& state) {
    return state.now < 80ms;
  });
  EXPECT_FOUND_WITHIN(3, program, 11);
}

TEST(Guided, Finds_a_callback_that_comes_after_the_end_of_what_it_uses) {
  Program program;
  Script& timer = program.thread();
  timer.sleep("w.cc:20", 10ms).crash_unless("w.cc:21", [](const auto& state) {
    return !state.is_set("destroyed");
  });
  program.main()
      .create("w.cc:10", timer)
      .sleep("w.cc:11", 100ms)
      .set("destroyed")
      .join("w.cc:13", timer);
  SimulatedHunt simulated(program);
  simulated.search(search_guided);
  ASSERT_THAT(simulated.hunt.found(), SizeIs(1));
  EXPECT_EQ(simulated.hunt.found()[0].outcome.kind, OutcomeKind::crash);
  EXPECT_THAT(simulated.places(), ElementsAre(EndsWith("@w.cc:10#1")));
}

TEST(Guided, Finds_one_worker_of_many_that_matters) {
  Program program;
  Script& idle = program.thread();
  idle.call("w.cc:40", "sched_yield");
  Script& worker = program.thread();
  worker.call("w.cc:20", "sched_yield").set("done");
  Script& main = program.main();
  main.repeat(10, [&](Script& script) { script.create("w.cc:9", idle); });
  main.create("w.cc:10", worker)
      .sleep("w.cc:11", 100ms)
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker)
      .join("w.cc:14", idle);
  EXPECT_FOUND_WITHIN(8, program, 12);
}

TEST(Guided, Makes_threads_late_in_functions_that_the_user_named) {
  Program program;
  Script& worker = program.thread();
  worker.work(1ms).enter("compute").work(1ms).set("done");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", 50ms)
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker);
  HuntOptions options = looking_for(12);
  options.groups_off = {"thread", "sleep"};
  options.extra_functions = {"compute"};
  SimulatedHunt simulated(program, options);
  simulated.search(search_guided);
  EXPECT_THAT(simulated.places(), ElementsAre("compute()@w.cc:10#1"));
}

TEST(Guided, Finds_two_different_failures_of_one_program) {
  Program program;
  Script& first = program.thread();
  Script& second = program.thread();
  first.call("w.cc:20", "sched_yield").set("first");
  second.call("w.cc:30", "sched_yield").set("second");
  program.main()
      .create("w.cc:10", first)
      .sleep("w.cc:11", 50ms)
      .check("w.cc:12", is_set("first"))
      .join("w.cc:13", first)
      .create("w.cc:14", second)
      .sleep("w.cc:15", 50ms)
      .check("w.cc:16", is_set("second"))
      .join("w.cc:17", second);
  SimulatedHunt simulated(program);
  simulated.search(search_guided);
  ASSERT_THAT(simulated.hunt.found(), SizeIs(2));
  EXPECT_NE(simulated.hunt.found()[0].outcome.signature,
            simulated.hunt.found()[1].outcome.signature);
}

TEST(Guided, Finds_only_what_was_wanted_of_two_failures) {
  Program program;
  Script& first = program.thread();
  Script& second = program.thread();
  first.call("w.cc:20", "sched_yield").set("first");
  second.call("w.cc:30", "sched_yield").set("second");
  program.main()
      .create("w.cc:10", first)
      .create("w.cc:14", second)
      .sleep("w.cc:15", 50ms)
      .check("w.cc:16", is_set("second"))
      .check("w.cc:17", is_set("first"))
      .join("w.cc:18", first)
      .join("w.cc:19", second);
  SimulatedHunt simulated(program, looking_for(17));
  simulated.search(search_guided);
  ASSERT_THAT(simulated.hunt.found(), SizeIs(1));
  EXPECT_EQ(simulated.hunt.found()[0].outcome.failures[0].line, 17);
}

// Most runs fail because the worker is slow; it passes when main is late.
TEST(Guided, Finds_the_delay_under_which_a_test_passes_that_mostly_fails) {
  Program program;
  program.jitter = 20ms;
  Script& worker = program.thread();
  worker.work(92ms).set("done");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", 90ms)
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker);
  SimulatedHunt simulated(program);
  simulated.search(search_guided);
  ASSERT_TRUE(simulated.hunt.goal().is_inverted());
  ASSERT_THAT(simulated.hunt.found(), SizeIs(1));
  EXPECT_TRUE(simulated.hunt.found()[0].passes_under_plan);
  EXPECT_THAT(simulated.places(), ElementsAre(EndsWith("@main")));
}

TEST(Guided, Does_nothing_at_sites_whose_group_is_off) {
  const Program program = async_wait();
  HuntOptions options;
  options.groups_off = {"thread"};
  SimulatedHunt simulated(program, options);
  simulated.search(search_guided);
  for (const std::string& site : simulated.hunt.coverage().sites_tried)
    EXPECT_EQ(site.find("pthread_create"), std::string::npos) << site;
  EXPECT_THAT(simulated.hunt.coverage().refused, IsEmpty());
}

TEST(Guided, Keeps_to_the_longest_delay_that_the_user_allows) {
  const Program program = async_wait();
  HuntOptions options;
  options.delays.most = 20ms;
  SimulatedHunt simulated(program, options);
  simulated.search(search_guided);
  EXPECT_THAT(simulated.hunt.found(), IsEmpty());
  for (const Experiment& experiment : simulated.executor.started())
    for (const Intervention& late : experiment.plan.interventions) EXPECT_LE(late.duration, 20ms);
}

Program joined() {
  Program program;
  Script& worker = program.thread();
  worker.work(5ms).call("w.cc:20", "sched_yield").set("done");
  program.main().create("w.cc:10", worker).join("w.cc:11", worker).check("w.cc:12", is_set("done"));
  return program;
}

Program waited_for() {
  Program program;
  Script& worker = program.thread();
  worker.lock("w.cc:20", "m").set("done").signal("w.cc:21", "c").unlock("w.cc:22", "m");
  program.main()
      .create("w.cc:10", worker)
      .lock("w.cc:11", "m")
      .wait("w.cc:12", "c", is_set("done"), "m")
      .check("w.cc:13", is_set("done"))
      .unlock("w.cc:14", "m")
      .join("w.cc:15", worker);
  return program;
}

Program handed_over() {
  Program program;
  Script& worker = program.thread();
  worker.repeat(20, [](Script& script) {
    script.call("w.cc:20", "sched_yield")
        .change([](auto& state) { ++state["items"]; })
        .post("w.cc:21", "s");
  });
  program.main()
      .create("w.cc:10", worker)
      .repeat(20, [](Script& script) { script.acquire("w.cc:11", "s"); })
      .check("w.cc:12", [](const auto& state) { return state.values.at("items") == 20; })
      .join("w.cc:13", worker);
  return program;
}

TEST(Guided, Reports_nothing_of_correct_programs) {
  for (const Program& program : {joined(), waited_for(), handed_over()}) {
    for (const HuntOptions& options : {HuntOptions(), looking_for(12)}) {
      SimulatedHunt simulated(program, options);
      simulated.search(search_guided);
      EXPECT_THAT(simulated.hunt.found(), IsEmpty());
      EXPECT_THAT(simulated.hunt.coverage().other_failures, IsEmpty());
    }
  }
}

TEST(Guided, Reports_nothing_of_correct_programs_that_fail_by_themselves) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Program program = joined();
    program.failure_rate = 0.4;
    program.seed = seed;
    SimulatedHunt simulated(program);
    simulated.search(search_guided);
    found += static_cast<int>(simulated.hunt.found().size());
  }
  EXPECT_LE(found, 2);
}

}  // namespace
}  // namespace unflake
