#include "search/reproduce/hunt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scripted_hunt.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

bool is_late(const Experiment& experiment) {
  return !experiment.plan.interventions.empty();
}

auto always_passes(Duration duration) {
  return [=](const Experiment& experiment, int) { return passes(experiment, duration); };
}

HuntOptions looking_for(const Failure& failure) {
  HuntOptions options;
  options.wanted = {signature_of(failure), failure};
  return options;
}

TEST(Hunt, Profiles_the_test_by_five_runs) {
  ScriptedHunt scripted(always_passes(10ms));
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_THAT(scripted.hunt.profile().runs, SizeIs(5));
  EXPECT_EQ(scripted.hunt.profile().average, 10ms);
}

TEST(Hunt, Profiles_a_slow_test_by_fewer_runs) {
  ScriptedHunt scripted(always_passes(40s));
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_THAT(scripted.hunt.profile().runs, SizeIs(2));
}

TEST(Hunt, Does_not_cut_a_profiling_run_short_that_takes_as_long_as_the_one_before) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    return experiment.timeout < 2min ? hangs(experiment) : passes(experiment, 2min);
  });
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_EQ(scripted.hunt.profile().failures(), 0);
}

TEST(Hunt, Loses_patience_without_a_sign_and_keeps_it_with_one) {
  for (const bool shows_signs : {false, true}) {
    HuntOptions options;
    options.patience = 1s;
    ScriptedHunt scripted(always_passes(100ms), options);
    ASSERT_TRUE(scripted.hunt.prepare());
    EXPECT_FALSE(scripted.hunt.over());
    if (shows_signs) scripted.hunt.take_sign();
    for (int i = 0; i < 20; ++i) scripted.hunt.look(Plan{});
    EXPECT_EQ(scripted.hunt.over(), !shows_signs);
    EXPECT_EQ(scripted.hunt.was_impatient(), !shows_signs);
  }
}

TEST(Hunt, Does_not_believe_a_single_hang) {
  HuntOptions options;
  options.profile_runs = 1;
  ScriptedHunt scripted(
      [](const Experiment& experiment, int nth) {
        return nth == 1 ? hangs(experiment) : passes(experiment, 10ms);
      },
      options);
  EXPECT_TRUE(scripted.hunt.prepare());
}

TEST(Hunt, Watches_the_failing_line_while_it_profiles) {
  Program program;
  program.main().work(1ms).check("a.cc:7", [](const auto&) { return true; });
  SimulatedHunt simulated(program, looking_for(failure_at("/ci/a.cc", 7)));
  ASSERT_TRUE(simulated.hunt.prepare());
  EXPECT_THAT(simulated.hunt.profile().model()->trace->calls, SizeIs(1));
}

TEST(Hunt, Goes_on_without_the_failing_line_when_it_is_not_in_the_binary) {
  Program program;
  program.main().call("a.cc:1", "sched_yield");
  SimulatedHunt simulated(program, looking_for(failure_at("gone.cc", 7)));
  EXPECT_TRUE(simulated.hunt.prepare());
  EXPECT_THAT(simulated.hunt.profile().runs, SizeIs(5));
  EXPECT_FALSE(simulated.hunt.runner().error());
}

TEST(Hunt, Looks_where_the_user_wants_it_to) {
  HuntOptions options;
  options.groups_off = {"lock"};
  options.extra_functions = {"compute"};
  options.system_calls = true;
  ScriptedHunt scripted(always_passes(1ms), options);
  ASSERT_TRUE(scripted.hunt.prepare());
  for (const Plan& plan : {scripted.executor.started()[0].plan, scripted.hunt.base_plan()}) {
    EXPECT_THAT(plan.groups_off, ElementsAre("lock"));
    EXPECT_THAT(plan.extra_functions, ElementsAre("compute"));
    EXPECT_TRUE(plan.system_calls);
  }
}

TEST(Hunt, Says_why_a_test_could_not_be_started) {
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) { return does_not_start(experiment, "no such file"); });
  EXPECT_FALSE(scripted.hunt.prepare());
  ASSERT_TRUE(scripted.hunt.runner().error());
  EXPECT_THAT(scripted.hunt.runner().error()->what, HasSubstr("no such file"));
}

TEST(Hunt, Has_nothing_to_search_in_a_test_that_always_fails) {
  ScriptedHunt scripted(by_chance(1, 1, 1));
  EXPECT_FALSE(scripted.hunt.prepare());
  EXPECT_TRUE(scripted.hunt.profile().always_fails);
  EXPECT_TRUE(scripted.hunt.over());
}

TEST(Hunt, Gives_up_on_a_test_that_never_stops_before_the_budget_is_over) {
  HuntOptions options;
  options.timeout = 1min;
  ScriptedHunt scripted([](const Experiment& experiment, int) { return hangs(experiment); },
                        options);
  EXPECT_FALSE(scripted.hunt.prepare());
  EXPECT_TRUE(scripted.hunt.profile().always_fails);
  EXPECT_LT(scripted.hunt.runner().elapsed(), scripted.hunt.options().budget);
}

TEST(Hunt, Does_not_take_a_slow_test_that_hung_once_for_one_that_never_stops) {
  ScriptedHunt scripted([](const Experiment& experiment, int nth) {
    return nth == 1 || experiment.timeout < 10s ? hangs(experiment) : passes(experiment, 10s);
  });
  EXPECT_TRUE(scripted.hunt.prepare());
  EXPECT_FALSE(scripted.hunt.profile().always_fails);
}

TEST(Hunt, Has_nothing_to_search_in_a_test_that_is_skipped) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    ExperimentResult result = passes(experiment, 1ms);
    result.outcome.kind = OutcomeKind::skipped;
    result.outcome.reason = "needs a network";
    return result;
  });
  EXPECT_FALSE(scripted.hunt.prepare());
  EXPECT_TRUE(scripted.hunt.profile().is_always_skipped());
  EXPECT_FALSE(scripted.hunt.profile().always_fails);
  EXPECT_FALSE(scripted.hunt.runner().error());
}

TEST(Hunt, Looks_for_a_pass_when_the_test_fails_in_most_runs) {
  ScriptedHunt scripted(by_chance(0.8, 0, 1));
  ASSERT_TRUE(scripted.hunt.prepare());
  EXPECT_TRUE(scripted.hunt.goal().is_inverted());
  const Trial trial = late_at(scripted.hunt, 1);
  const auto seen = scripted.hunt.observe(trial);
  ASSERT_TRUE(seen && seen->hit);
  ASSERT_TRUE(scripted.hunt.confirm(trial, *seen));
  EXPECT_TRUE(scripted.hunt.found()[0].passes_under_plan);
  EXPECT_EQ(scripted.hunt.found()[0].outcome.failures[0].line, 1);
  EXPECT_TRUE(scripted.hunt.over());
}

TEST(Hunt, Looks_for_a_failure_when_the_test_passes_in_most_runs) {
  ScriptedHunt scripted(by_chance(0.3, 1, 1));
  ASSERT_TRUE(scripted.hunt.prepare());
  EXPECT_FALSE(scripted.hunt.goal().is_inverted());
}

TEST(Hunt, Looks_for_a_rare_failure_of_a_test_that_often_fails_in_another_way) {
  ScriptedHunt scripted(by_chance(0.8, 1, 1), looking_for(failure_at("wanted.cc", 5)));
  ASSERT_TRUE(scripted.hunt.prepare());
  EXPECT_FALSE(scripted.hunt.goal().is_inverted());
}

TEST(Hunt, Tries_again_what_failed_before_it_was_late_and_never_takes_it_for_a_hit) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    if (!is_late(experiment)) return passes(experiment, 1ms);
    ExperimentResult result = fails(experiment, 1ms);
    auto trace = std::make_shared<Trace>();
    trace->interventions.resize(1);
    result.trace = trace;
    return result;
  });
  ASSERT_TRUE(scripted.hunt.prepare());
  const auto seen = scripted.hunt.observe(late_at(scripted.hunt, 1));
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->hit);
  EXPECT_FALSE(seen->fired);
  EXPECT_EQ(scripted.hunt.coverage().search_runs, 3);
  EXPECT_EQ(scripted.hunt.coverage().never_fired, 3);
  EXPECT_THAT(scripted.hunt.coverage().plans_tried, SizeIs(1));
}

TEST(Hunt, Takes_no_plan_that_could_not_be_carried_out_for_a_failure) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    return is_late(experiment) || experiment.conditions.one_core
               ? does_not_start(experiment, "no such site")
               : passes(experiment, 1ms);
  });
  ASSERT_TRUE(scripted.hunt.prepare());
  Trial shaken{scripted.hunt.base_plan(), {true, 1, 0}, ""};
  EXPECT_FALSE(scripted.hunt.observe(shaken)->hit);
  EXPECT_FALSE(scripted.hunt.observe(late_at(scripted.hunt, 1))->hit);
  const Coverage& coverage = scripted.hunt.coverage();
  EXPECT_THAT(coverage.refused, ElementsAre("no such site"));
  EXPECT_THAT(coverage.other_failures, IsEmpty());
  EXPECT_EQ(coverage.search_runs, 2);
  EXPECT_EQ(coverage.never_fired, 0);
}

TEST(Hunt, Counts_what_it_tries) {
  ScriptedHunt scripted(always_passes(1ms));
  ASSERT_TRUE(scripted.hunt.prepare());
  scripted.hunt.observe(late_at(scripted.hunt, 1, 100ms));
  scripted.hunt.observe(late_at(scripted.hunt, 1, 200ms));
  scripted.hunt.observe(late_at(scripted.hunt, 2, 100ms));
  scripted.hunt.observe(late_at(scripted.hunt, 2, 100ms));
  scripted.hunt.observe({scripted.hunt.base_plan(), {}, ""});
  const Coverage& coverage = scripted.hunt.coverage();
  EXPECT_EQ(coverage.search_runs, 5);
  EXPECT_EQ(coverage.fired_runs, 4);
  EXPECT_EQ(coverage.never_fired, 0);
  EXPECT_THAT(coverage.sites_tried, SizeIs(2));
  EXPECT_THAT(coverage.plans_tried, SizeIs(4));
  EXPECT_EQ(coverage.delay_added, 500ms);
}

TEST(Hunt, Counts_other_failures_and_reports_none_of_them) {
  ScriptedHunt scripted(by_chance(0, 1, 1), looking_for(failure_at("wanted.cc", 5)));
  ASSERT_TRUE(scripted.hunt.prepare());
  const auto seen = scripted.hunt.observe(late_at(scripted.hunt, 1));
  EXPECT_FALSE(seen->hit);
  EXPECT_THAT(scripted.hunt.coverage().other_failures, ElementsAre(Pair(HasSubstr(":1"), 1)));
}

Duration limit_of(const Trial& trial, ScriptedHunt& scripted) {
  scripted.hunt.observe(trial);
  return scripted.executor.started().back().timeout;
}

TEST(Hunt, Gives_a_run_what_it_takes_and_its_delays_and_some_more) {
  ScriptedHunt scripted(always_passes(100ms));
  ASSERT_TRUE(scripted.hunt.prepare());
  EXPECT_EQ(limit_of(late_at(scripted.hunt, 1, 5s), scripted), 300ms + 5s + 2s);
  Trial halving = late_at(scripted.hunt, 1, 5s);
  halving.plan.interventions[0].visits = Intervention::Visits::halving;
  EXPECT_EQ(limit_of(halving, scripted), 300ms + 10s + 2s);
  Trial scarce = late_at(scripted.hunt, 1, 5s);
  scarce.conditions.cpu_share = 0.1;
  EXPECT_EQ(limit_of(scarce, scripted), 3s + 5s + 2s);
}

TEST(Hunt, Gives_no_run_more_than_the_user_allows) {
  HuntOptions options;
  options.timeout = 3s;
  ScriptedHunt scripted(always_passes(100ms), options);
  ASSERT_TRUE(scripted.hunt.prepare());
  EXPECT_EQ(limit_of(late_at(scripted.hunt, 1, 5s), scripted), 3s);
}

Program two_loops() {
  Program program;
  for (int i = 0; i < 2; ++i)
    program.thread().repeat(3, [](auto& script) { script.call("a.cc:20", "sched_yield"); });
  program.main()
      .create("a.cc:10", program.scripts[1])
      .create("a.cc:11", program.scripts[2])
      .join("a.cc:12", program.scripts[1])
      .join("a.cc:13", program.scripts[2]);
  return program;
}

TEST(Hunt, Knows_how_often_the_threads_of_a_plan_come_to_its_site) {
  const Program program = two_loops();
  SimulatedHunt simulated(program);
  ASSERT_TRUE(simulated.hunt.prepare());
  Intervention late;
  late.site = *parse_site("a.cc:20:sched_yield");
  EXPECT_EQ(visits_of(simulated.hunt.profile(), late), 6u);
  late.thread = simulated::thread_named("a.cc:10#1");
  late.threads = Intervention::Threads::named;
  EXPECT_EQ(visits_of(simulated.hunt.profile(), late), 3u);
  late.threads = Intervention::Threads::in_class;
  EXPECT_EQ(visits_of(simulated.hunt.profile(), late), 3u);
  late.executable = "another";
  EXPECT_EQ(visits_of(simulated.hunt.profile(), late), 1u);
}

TEST(Hunt, Stops_when_somebody_asks_for_it) {
  for (int waits = 0; waits < 20; ++waits) {
    ScriptedHunt scripted(by_chance(0, 1, 1));
    scripted.executor.interrupt_after(waits, Stopped{});
    if (scripted.hunt.prepare()) {
      const Trial trial = late_at(scripted.hunt, 1);
      if (const auto seen = scripted.hunt.observe(trial)) scripted.hunt.confirm(trial, *seen);
      while (!scripted.hunt.over()) scripted.hunt.observe(trial);
    }
    EXPECT_TRUE(scripted.hunt.runner().stopped()) << waits;
    EXPECT_FALSE(scripted.hunt.observe(late_at(scripted.hunt, 2)));
    EXPECT_EQ(scripted.executor.started().size(), static_cast<size_t>(waits) + 1);
  }
}

TEST(Hunt, Ends_with_the_error_of_a_broken_executor) {
  ScriptedHunt scripted(always_passes(1ms));
  scripted.executor.interrupt_after(6, Broken{usage_error("no memory")});
  ASSERT_TRUE(scripted.hunt.prepare());
  while (scripted.hunt.observe(late_at(scripted.hunt, 1))) {
  }
  ASSERT_TRUE(scripted.hunt.runner().error());
  EXPECT_TRUE(scripted.hunt.over());
}

TEST(Hunt, Is_over_when_the_budget_is) {
  ScriptedHunt scripted(always_passes(1s));
  ASSERT_TRUE(scripted.hunt.prepare());
  while (scripted.hunt.observe(late_at(scripted.hunt, 1))) {
  }
  EXPECT_TRUE(scripted.hunt.out_of_budget());
  EXPECT_LE(scripted.hunt.runner().elapsed(), scripted.hunt.options().budget + 1s);
}

// As a test does that fails by a random number.
TEST(Hunt, Sees_that_lateness_makes_no_difference) {
  ScriptedHunt scripted(by_chance(0.3, 0.3, 7));
  ASSERT_TRUE(scripted.hunt.prepare());
  for (int i = 0; i < 60; ++i) scripted.hunt.observe(late_at(scripted.hunt, i + 1));
  const LatenessEffect effect = lateness_effect(scripted.hunt);
  EXPECT_EQ(effect.late.runs, 60);
  EXPECT_GT(effect.late.hits, 0);
  EXPECT_GE(effect.plain.runs, 5);
  EXPECT_FALSE(effect.shows()) << effect.p;
}

TEST(Hunt, Sees_that_lateness_makes_a_difference) {
  ScriptedHunt scripted(by_chance(0.1, 0.7, 7));
  ASSERT_TRUE(scripted.hunt.prepare());
  for (int i = 0; i < 60; ++i) scripted.hunt.observe(late_at(scripted.hunt, i + 1));
  EXPECT_TRUE(lateness_effect(scripted.hunt).shows());
}

Outcome outcome_of(const Failure& failure) {
  return {OutcomeKind::fail, 1ms, {failure}, signature_of(failure), ""};
}

TEST(Wanted, Is_any_failure_when_nothing_is_named) {
  EXPECT_TRUE(Wanted().matches(outcome_of(failure_at("a.cc", 1))));
  EXPECT_FALSE(Wanted().matches(Outcome()));
}

TEST(Wanted, Matches_by_signature) {
  const Wanted wanted{signature_of(failure_at("a.cc", 1)), std::nullopt};
  EXPECT_TRUE(wanted.matches(outcome_of(failure_at("a.cc", 1))));
  Failure other = failure_at("a.cc", 1);
  other.kind = FailureKind::signal;
  EXPECT_FALSE(wanted.matches(outcome_of(other)));
}

TEST(Wanted, Matches_by_line_in_whatever_folder) {
  Failure logged = failure_at("/ci/build/a.cc", 1);
  logged.expression = "queue.empty()";
  const Wanted wanted{signature_of(logged), logged};
  EXPECT_TRUE(wanted.matches(outcome_of(failure_at("/home/me/a.cc", 1))));
  EXPECT_FALSE(wanted.matches(outcome_of(failure_at("/home/me/b.cc", 1))));
}

TEST(Wanted, Matches_by_kind_when_nothing_else_is_known) {
  Failure hang;
  hang.kind = FailureKind::timeout;
  const Wanted wanted{"", hang};
  EXPECT_TRUE(wanted.matches(outcome_of(hang)));
  EXPECT_FALSE(wanted.matches(outcome_of(failure_at("a.cc", 1))));
}

TEST(Wanted, Matches_a_failure_that_comes_behind_another) {
  Outcome both = outcome_of(failure_at("a.cc", 1));
  both.failures.push_back(failure_at("a.cc", 9));
  EXPECT_TRUE((Wanted{"", failure_at("a.cc", 9)}.matches(both)));
}

}  // namespace
}  // namespace unflake
