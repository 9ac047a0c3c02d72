#include "search/schedule/explore.h"

#include <gtest/gtest.h>

#include "search/schedule/portfolio.h"
#include "support/controlled_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Answer = ExploreReport::Answer;
using simulated::ControlledProgram;
using simulated::View;

ExploreOptions quick_options() {
  ExploreOptions options;
  options.limits.budget = 20s;  // simulated, a millisecond for each run
  return options;
}

ExploreReport report_from(MockExecutor& executor, const ExploreOptions& options = quick_options()) {
  auto test = std::make_shared<unflake::Test>();
  test->id = {"simulated", "Controlled"};
  EventStream events;
  TrialRunner runner(executor, test, events);
  auto report = explore(runner, options);
  EXPECT_TRUE(report.has_value());
  return std::move(*report);
}

ExploreReport report_of(const ControlledProgram& program,
                        const ExploreOptions& options = quick_options(), size_t slots = 1) {
  MockExecutor executor = simulated::executor_of(program, slots);
  return report_from(executor, options);
}

TEST(Profile, counts_what_threads_do_to_shared_objects) {
  const auto run = simulated::run_controlled(simulated::locked_updates(3), {});
  const ScheduleProfile profile = profile_of(*run.trace);
  EXPECT_EQ(4u, profile.threads);
  EXPECT_EQ(run.trace->controlled->points_in_all, profile.length);
  ASSERT_EQ(2u, profile.shared.size());
  for (const auto& object : profile.shared) {
    EXPECT_EQ(2u, object.accesses[1]);
    EXPECT_EQ(2u, object.accesses[3]);
  }
}

TEST(Profile, puts_objects_of_the_same_places_into_one_group) {
  ControlledProgram program;
  for (int t = 0; t < 2; ++t) {
    auto& script = program.scripts[program.add_thread()];
    for (const char* element : {"a[0]", "a[1]", "a[2]"}) script.set("array.cc:1", element, t);
    script.set("flag.cc:1", "flag", t);
  }
  program.main()
      .spawn("main.cc:1", 1)
      .spawn("main.cc:2", 2)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  const ScheduleProfile profile = profile_of(*simulated::run_controlled(program, {}).trace);
  EXPECT_EQ(4u, profile.shared.size());
  EXPECT_EQ(2u, profile.groups.size());
}

TEST(Portfolio, takes_samplers_in_turn_and_tells_them_what_they_need) {
  const auto run = simulated::run_controlled(simulated::lost_update(3), {});
  Portfolio portfolio(profile_of(*run.trace), {}, {}, 1);
  const Schedule surw = portfolio.next();
  EXPECT_EQ(Sampler::surw, surw.sampler);
  EXPECT_EQ(1u, surw.selected.size());
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 2, 2}), surw.remaining);
  const Schedule pos = portfolio.next();
  EXPECT_EQ(Sampler::pos, pos.sampler);
  EXPECT_NE(surw.seed, pos.seed);
  EXPECT_GT(portfolio.next_by(Sampler::pct).length, 0u);
}

TEST(Coverage, independent_accesses_make_no_order_and_conflicts_do) {
  ControlledProgram apart, together;
  for (int t = 0; t < 2; ++t) {
    apart.scripts[apart.add_thread()].set("a.cc:1", t == 0 ? "x" : "y", 1);
    together.scripts[together.add_thread()].set(t == 0 ? "a.cc:1" : "b.cc:1", "x", 1);
  }
  for (ControlledProgram* program : {&apart, &together})
    program->main()
        .spawn("main.cc:1", 1)
        .spawn("main.cc:2", 2)
        .join("main.cc:3", 1)
        .join("main.cc:4", 2);
  ScheduleCoverage of_apart, of_together;
  Schedule schedule;
  schedule.sampler = Sampler::random_walk;
  for (schedule.seed = 1; schedule.seed <= 100; ++schedule.seed) {
    of_apart.add(*simulated::run_controlled(apart, schedule).trace);
    of_together.add(*simulated::run_controlled(together, schedule).trace);
  }
  EXPECT_EQ(1u, of_apart.orders());
  EXPECT_EQ(0u, of_apart.pairs());
  EXPECT_EQ(2u, of_together.orders());
  EXPECT_EQ(1u, of_together.pairs());
  EXPECT_EQ(1u, of_together.pairs_in_both_orders());
  EXPECT_GT(of_apart.runs_since_new(), 90u);
}

TEST(Explore, finds_a_lost_update_and_says_what_it_takes) {
  const ExploreReport report = report_of(simulated::lost_update(3));
  EXPECT_EQ(Answer::fails, report.answer);
  ASSERT_TRUE(report.found);
  EXPECT_EQ(51, report.found->failure.line);
  EXPECT_EQ(5u, report.found->came_back);
  EXPECT_LE(report.found->after_schedules, 20u);
  EXPECT_EQ(1u, report.found->orders.size());
  EXPECT_EQ(4u, report.rates.size());
  for (const auto& rate : report.rates) EXPECT_EQ(50u, rate.schedules);
}

TEST(Explore, what_it_found_fails_again_under_the_schedule_that_it_tells) {
  for (const auto& program : {simulated::lost_update(3), simulated::half_reading(3),
                              simulated::crossed_locks(), simulated::missed_signal()}) {
    const ExploreReport report = report_of(program);
    ASSERT_TRUE(report.found);
    const auto again = simulated::run_controlled(program, report.found->schedule);
    EXPECT_EQ(report.found->digest, again.trace->controlled->digest);
    EXPECT_EQ(report.found->signature, again.outcome.signature);
  }
}

TEST(Explore, what_fails_undisturbed_is_compared_with_free_runs) {
  ControlledProgram wrong;
  wrong.scripts[wrong.add_thread()].set("worker.cc:1", "done", 1);
  wrong.main()
      .spawn("main.cc:1", 1)
      .join("main.cc:2", 1)
      .read("main.cc:3", "done")
      .check("main.cc:4", [](View view) { return view.own["done"] == 2; });
  for (const bool fails_freely : {true, false}) {
    MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int) {
                            if (experiment.plan.schedule || fails_freely)
                              return simulated::run_controlled(
                                  wrong, experiment.plan.schedule.value_or(Schedule{}));
                            ExperimentResult passed;
                            passed.outcome.kind = OutcomeKind::pass;
                            passed.process.end = ProcessResult::End::exited;
                            return passed;
                          }),
                          1);
    const ExploreReport report = report_from(executor);
    ASSERT_TRUE(report.found);
    EXPECT_EQ(5u, report.found->free_runs);
    EXPECT_EQ(fails_freely ? 5u : 0u, report.found->free_failures);
    EXPECT_TRUE(report.rates.empty());
  }
}

TEST(Explore, a_sound_test_passes_in_all_schedules) {
  const ExploreReport report = report_of(simulated::locked_updates(3));
  EXPECT_EQ(Answer::passes_in_all, report.answer);
  ASSERT_FALSE(report.bounded.empty());
  EXPECT_TRUE(report.bounded.back().is_complete);
  EXPECT_FALSE(report.bounded.back().preemptions);
  EXPECT_EQ(report.pairs, report.pairs_in_both_orders);
}

TEST(Explore, does_not_say_that_all_pass_when_threads_outlive_main) {
  ControlledProgram program;
  program.scripts[program.add_thread()].set("late.cc:1", "x", 1);
  program.main().spawn("main.cc:1", 1);
  const ExploreReport report = report_of(program);
  EXPECT_EQ(Answer::nothing_new, report.answer);
  for (const auto& bounded : report.bounded) EXPECT_TRUE(bounded.preemptions);
}

TEST(Explore, stops_when_nothing_new_is_seen) {
  ExploreOptions options = quick_options();
  options.exhaustive = false;
  const ExploreReport report = report_of(simulated::locked_updates(3), options);
  EXPECT_EQ(Answer::nothing_new, report.answer);
  EXPECT_GE(report.since_new_order, 300u);
  EXPECT_LT(report.schedules, 2000u);
}

TEST(Explore, keeps_to_its_budget) {
  ExploreOptions options = quick_options();
  options.limits.budget = 50ms;
  const ExploreReport report = report_of(simulated::locked_updates(6), options);
  EXPECT_EQ(Answer::budget_over, report.answer);
  EXPECT_LE(report.schedules, 51u);
}

TEST(Explore, the_least_lateness_that_fails_is_the_slack) {
  const ExploreReport report = report_of(simulated::late_worker(30ms));
  ASSERT_TRUE(report.found);
  EXPECT_GE(report.found->stall, 30ms);
  EXPECT_LE(report.found->stall, 34ms);
}

TEST(Explore, nobody_is_later_than_allowed) {
  const ExploreReport report = report_of(simulated::late_worker(150ms));
  EXPECT_FALSE(report.found);
  EXPECT_EQ(Duration(100ms), report.longest_stall);
}

TEST(Explore, looks_at_memory_accesses_when_calls_show_nothing) {
  ControlledProgram program = simulated::half_reading(2);
  program.memory_needs_accesses = true;
  ExploreOptions options = quick_options();
  options.accesses = false;
  EXPECT_EQ(Answer::passes_in_all, report_of(program, options).answer);
  const ExploreReport report = report_of(program);
  ASSERT_TRUE(report.found);
  EXPECT_TRUE(report.found->needs_accesses);
  EXPECT_EQ(4u, report.access_sites);
}

TEST(Explore, what_does_not_come_back_is_not_taken_for_a_finding) {
  int runs = 0;
  MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int) {
    ExperimentResult result = simulated::run_controlled(
        simulated::locked_updates(2), experiment.plan.schedule.value_or(Schedule{}));
    if (++runs == 7) {
      result.outcome.kind = OutcomeKind::fail;
      result.outcome.signature = "0123456789abcdef";
    }
    return result;
  }));
  EventStream events;
  TrialRunner runner(executor, std::make_shared<unflake::Test>(), events);
  const auto report = explore(runner, quick_options());
  ASSERT_TRUE(report->found);
  EXPECT_EQ(0u, report->found->came_back);
  EXPECT_EQ(5u, report->found->repeats);
  EXPECT_GT(report->schedules, 7u + 5u);  // it went on
}

TEST(Explore, says_why_a_test_cannot_be_controlled) {
  MockExecutor executor(MockExecutor::FullTruth([](const Experiment&, int) {
    ExperimentResult result;
    Trace trace;
    trace.processes.push_back({});
    trace.processes[0].degraded = {"a static binary"};
    result.trace = std::make_shared<Trace>(trace);
    return result;
  }));
  EventStream events;
  TrialRunner runner(executor, std::make_shared<unflake::Test>(), events);
  const auto report = explore(runner, quick_options());
  EXPECT_EQ(Answer::not_controlled, report->answer);
  EXPECT_EQ("a static binary", report->why);
}

TEST(Explore, says_why_the_agent_refused) {
  MockExecutor executor(MockExecutor::FullTruth([](const Experiment&, int) {
    ExperimentResult result;
    Trace trace;
    trace.controlled.emplace();
    trace.controlled->not_repeatable = "it is built with ThreadSanitizer";
    result.trace = std::make_shared<Trace>(trace);
    return result;
  }));
  EventStream events;
  TrialRunner runner(executor, std::make_shared<unflake::Test>(), events);
  const auto report = explore(runner, quick_options());
  EXPECT_EQ(Answer::not_controlled, report->answer);
  EXPECT_EQ("it is built with ThreadSanitizer", report->why);
}

TEST(Explore, several_slots_find_the_same) {
  EXPECT_EQ(Answer::fails, report_of(simulated::half_reading(3), quick_options(), 4).answer);
  EXPECT_EQ(Answer::passes_in_all,
            report_of(simulated::locked_updates(2), quick_options(), 4).answer);
}

}  // namespace
}  // namespace unflake
