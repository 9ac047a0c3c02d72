#include "search/reproduce/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scripted_hunt.h"
#include "support/simulated_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::SimulatedHunt;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Fails when the worker is late by more than the patience at its first visit of w.cc:20.
Program impatient(Duration patience, Duration jitter = {}) {
  Program program;
  program.jitter = jitter;
  simulated::Script& worker = program.thread();
  worker.call("w.cc:20", "sched_yield").set("done");
  worker.call("w.cc:20", "sched_yield").call("w.cc:21", "sched_yield");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", patience)
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker);
  return program;
}

Intervention late_worker_at(const std::string& site, Duration duration) {
  Intervention late;
  late.site = *parse_site(site);
  late.threads = Intervention::Threads::named;
  late.thread = simulated::thread_named("w.cc:10#1");
  late.duration = duration;
  return late;
}

// What is confirmed of the interventions; nothing when they are not.
Found* confirm(SimulatedHunt& simulated, const std::vector<Intervention>& interventions) {
  Hunt& hunt = simulated.hunt;
  if (!hunt.prepare()) return nullptr;
  Trial trial{hunt.base_plan(), {}, "tested"};
  trial.plan.interventions = interventions;
  const auto seen = hunt.observe(trial);
  const bool held = seen && seen->hit && hunt.confirm(trial, *seen);
  return held ? &hunt.found().front() : nullptr;
}

TEST(Shrink, Leaves_out_interventions_that_are_not_needed) {
  const Program program = impatient(100ms);
  SimulatedHunt simulated(program);
  Found* found = confirm(simulated, {late_worker_at("w.cc:21:sched_yield", 300ms),
                                     late_worker_at("w.cc:20:sched_yield", 300ms)});
  ASSERT_NE(found, nullptr);
  shrink(simulated.hunt, *found);
  EXPECT_THAT(simulated.places(), ElementsAre("w.cc:20:sched_yield@w.cc:10#1"));
  EXPECT_EQ(found->with_plan, (Count{5, 5}));
}

TEST(Shrink, Leaves_out_visits_that_are_not_needed) {
  const Program program = impatient(100ms);
  SimulatedHunt simulated(program);
  Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 300ms)});
  ASSERT_NE(found, nullptr);
  shrink(simulated.hunt, *found);
  const Intervention& late = found->trial.plan.interventions[0];
  EXPECT_EQ(late.visits, Intervention::Visits::only_nth);
  EXPECT_EQ(late.nth, 1u);
}

// Fails when the worker's four visits of w.cc:20 together make it later than the patience.
Program patient_with_four(Duration patience) {
  Program program;
  simulated::Script& worker = program.thread();
  worker.repeat(4, [](auto& script) { script.call("w.cc:20", "sched_yield"); }).set("done");
  program.main()
      .create("w.cc:10", worker)
      .sleep("w.cc:11", patience)
      .check("w.cc:12", is_set("done"))
      .join("w.cc:13", worker);
  return program;
}

Intervention halving(Intervention late) {
  late.visits = Intervention::Visits::halving;
  return late;
}

TEST(Shrink, Puts_visits_that_are_needed_together_into_one) {
  const Program program = patient_with_four(400ms);
  for (const Intervention& late : {late_worker_at("w.cc:20:sched_yield", 150ms),
                                   halving(late_worker_at("w.cc:20:sched_yield", 300ms))}) {
    SimulatedHunt simulated(program);
    Found* found = confirm(simulated, {late});
    ASSERT_NE(found, nullptr);
    shrink(simulated.hunt, *found);
    EXPECT_EQ(found->trial.plan.interventions[0].visits, Intervention::Visits::only_nth);
    EXPECT_EQ(found->trial.plan.interventions[0].duration, 600ms);
  }
}

TEST(Shrink, Keeps_visits_that_no_single_delay_replaces) {
  const Program program = patient_with_four(400ms);
  HuntOptions options;
  options.delays.most = 300ms;
  SimulatedHunt simulated(program, options);
  Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 300ms)});
  ASSERT_NE(found, nullptr);
  shrink(simulated.hunt, *found);
  EXPECT_EQ(found->trial.plan.interventions[0].visits, Intervention::Visits::every);
}

// What an anchor or a hold refers to keeps its place when something before it goes away.
TEST(Shrink, Renumbers_what_others_refer_to) {
  const Program program = impatient(100ms);
  SimulatedHunt simulated(program);
  Intervention watch = late_worker_at("w.cc:20:sched_yield", 0ms);
  watch.action = Intervention::Action::watch;
  watch.threads = Intervention::Threads::any;
  watch.site = *parse_site("w.cc:12");
  Intervention hold = late_worker_at("w.cc:20:sched_yield", 5s);
  hold.action = Intervention::Action::hold;
  hold.until = 1;
  Found* found = confirm(simulated, {late_worker_at("w.cc:21:sched_yield", 10ms), watch, hold});
  ASSERT_NE(found, nullptr);
  shrink(simulated.hunt, *found);
  ASSERT_THAT(found->trial.plan.interventions, SizeIs(2));
  EXPECT_EQ(found->trial.plan.interventions[1].until, 0u);
}

TEST(Shrink, Keeps_the_plan_when_there_is_no_time_to_try_smaller_ones) {
  HuntOptions options;
  options.budget = 10s;
  const Program program = impatient(100ms);
  SimulatedHunt simulated(program, options);
  Found* found = confirm(simulated, {late_worker_at("w.cc:21:sched_yield", 300ms),
                                     late_worker_at("w.cc:20:sched_yield", 300ms)});
  ASSERT_NE(found, nullptr);
  while (simulated.hunt.runner().elapsed() < 16s) simulated.executor.wait(1s);
  shrink(simulated.hunt, *found);
  EXPECT_THAT(found->trial.plan.interventions, SizeIs(2));
}

// A plan that does nothing fails five times in a row by chance in 1 of 33 cases here.
TEST(Shrink, Does_not_lose_what_is_needed_when_the_test_fails_often_by_itself) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    HuntOptions options;
    options.budget = 100h;
    ScriptedHunt scripted(
        [&](const Experiment& experiment, int nth) {
          bool is_needed_there = false;
          for (const Intervention& late : experiment.plan.interventions)
            is_needed_there = is_needed_there || late.site.line == 2;
          return by_chance(0.5, is_needed_there ? 1 : 0.5, seed)(experiment, nth);
        },
        options);
    if (!scripted.hunt.prepare() || scripted.hunt.goal().is_inverted()) continue;
    Trial trial = late_at(scripted.hunt, 1);
    trial.plan.interventions.push_back(late_at(scripted.hunt, 2).plan.interventions[0]);
    const auto seen = scripted.hunt.observe(trial);
    if (!seen || !seen->hit || !scripted.hunt.confirm(trial, *seen)) continue;
    Found& found = scripted.hunt.found()[0];
    shrink(scripted.hunt, found);
    lost += found.trial.plan.interventions.back().site.line != 2;
  }
  EXPECT_LE(lost, 4);
}

TEST(Slack, Is_a_bracket_around_the_truth) {
  for (const Duration patience : {3ms, 20ms, 150ms, 800ms}) {
    const Program program = impatient(patience);
    SimulatedHunt simulated(program);
    Found* found =
        confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 2 * patience + 100ms)});
    ASSERT_NE(found, nullptr);
    measure_slack(simulated.hunt, *found);
    ASSERT_TRUE(found->slack);
    EXPECT_LE(found->slack->passes, patience + 10us);
    EXPECT_GE(found->slack->fails, patience - 10us);
    EXPECT_LE(found->slack->fails - found->slack->passes, std::max<Duration>(patience / 4, 1ms));
  }
}

// The delays of 10 ms after which "slack 6.8 ms" would be told: no single one of 8 ms breaks it.
TEST(Slack, Is_how_late_all_delays_together_make_the_thread_that_fails_the_test) {
  const Duration patience = 10ms;
  const Program program = patient_with_four(patience);
  for (const Intervention& late : {late_worker_at("w.cc:20:sched_yield", 20ms),
                                   halving(late_worker_at("w.cc:20:sched_yield", 20ms))}) {
    SimulatedHunt simulated(program);
    Found* found = confirm(simulated, {late});
    ASSERT_NE(found, nullptr);
    measure_slack(simulated.hunt, *found);
    ASSERT_TRUE(found->slack);
    EXPECT_GE(found->slack->fails, patience - 100us);
    EXPECT_LE(found->slack->fails, patience * 14 / 10);
    EXPECT_LT(found->slack->passes, patience + 100us);
    EXPECT_GT(found->slack->passes, patience / 2);
    for (const Dose& dose : found->doses)
      EXPECT_EQ(dose.failures.hits > 0, dose.delay >= found->slack->fails) << dose.delay.count();
  }
}

TEST(Slack, Of_several_delays_is_a_bound_on_all_of_them_when_there_is_no_time_to_measure) {
  const Program program = patient_with_four(10ms);
  HuntOptions options;
  options.budget = 10s;
  SimulatedHunt simulated(program, options);
  Found* found = confirm(simulated, {halving(late_worker_at("w.cc:20:sched_yield", 8ms))});
  ASSERT_NE(found, nullptr);
  while (simulated.hunt.runner().left() > Duration::zero()) simulated.executor.wait(1s);
  measure_slack(simulated.hunt, *found);
  ASSERT_TRUE(found->slack);
  EXPECT_EQ(found->slack, (Slack{0ms, 16ms}));
}

// What a thread does after the check has failed is not what made it fail.
TEST(Slack, Leaves_out_what_was_late_after_the_failure) {
  const Program program = impatient(100ms);
  SimulatedHunt simulated(program);
  Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 300ms),
                                     late_worker_at("w.cc:21:sched_yield", 300ms)});
  ASSERT_NE(found, nullptr);
  measure_slack(simulated.hunt, *found);
  ASSERT_TRUE(found->slack);
  EXPECT_LE(found->slack->passes, 101ms);
  EXPECT_LE(found->slack->fails, 125ms);
}

// Whoever runs out of time knows at least whether it is a flaw.
TEST(Slack, Tells_margins_from_the_rest_first) {
  const Program program = impatient(4s);
  HuntOptions options;
  options.budget = 115s;
  SimulatedHunt simulated(program, options);
  Intervention late = late_worker_at("w.cc:20:sched_yield", 6s);
  late.visits = Intervention::Visits::only_nth;
  Found* found = confirm(simulated, {late});
  ASSERT_NE(found, nullptr);
  measure_slack(simulated.hunt, *found);
  ASSERT_TRUE(found->slack);
  EXPECT_GE(found->slack->passes, 1s);
  EXPECT_LE(simulated.hunt.runner().elapsed(), options.budget);
}

TEST(Slack, Has_all_doses_by_delay) {
  const Program program = impatient(150ms);
  SimulatedHunt simulated(program);
  Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 1s)});
  ASSERT_NE(found, nullptr);
  measure_slack(simulated.hunt, *found);
  ASSERT_THAT(found->doses, SizeIs(testing::Ge(4u)));
  EXPECT_EQ(found->doses.front(), (Dose{Duration::zero(), found->without_plan}));
  EXPECT_EQ(found->doses.back(), (Dose{1s, found->with_plan}));
  for (const Dose& dose : found->doses)
    EXPECT_EQ(dose.failures.hits, dose.delay > 150ms ? dose.failures.runs : 0)
        << dose.delay.count();
}

// Main sleeps for 100 to 200 ms: a worker that is late by 150 ms is late in half of the runs. The
// doses around that are those whose verdict may be either.
TEST(Slack, Covers_the_point_where_half_of_the_runs_fail) {
  int covered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Program program = impatient(100ms, 100ms);
    program.seed = seed;
    SimulatedHunt simulated(program);
    Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 1s)});
    ASSERT_NE(found, nullptr);
    measure_slack(simulated.hunt, *found);
    covered += found->slack->passes <= 170ms && found->slack->fails >= 130ms;
  }
  EXPECT_GE(covered, 36);
}

TEST(Slack, Is_not_measured_for_longer_than_it_is_worth) {
  const Program program = impatient(8s);
  HuntOptions options;
  options.delays.most = 60s;
  SimulatedHunt simulated(program, options);
  Found* found = confirm(simulated, {late_worker_at("w.cc:20:sched_yield", 10s)});
  ASSERT_NE(found, nullptr);
  const Duration before = simulated.hunt.runner().elapsed();
  measure_slack(simulated.hunt, *found);
  EXPECT_LE(simulated.hunt.runner().elapsed() - before, 45s);
  ASSERT_TRUE(found->slack);
  EXPECT_LE(found->slack->passes, 8s);
  EXPECT_GE(found->slack->fails, 8s);
}

TEST(Slack, Is_none_of_a_plan_without_delays) {
  ScriptedHunt scripted(by_chance(0, 1, 1));
  Found found;
  found.trial.plan.agent = true;
  measure_slack(scripted.hunt, found);
  EXPECT_FALSE(found.slack);
  EXPECT_THAT(found.doses, IsEmpty());
}

TEST(Slack, Scales_all_delays_together) {
  Plan plan;
  plan.interventions = {late_worker_at("w.cc:20:sched_yield", 400ms),
                        late_worker_at("w.cc:21:sched_yield", 100ms)};
  EXPECT_EQ(longest_delay(plan), 400ms);
  const Plan scaled = with_longest_delay(plan, 40ms);
  EXPECT_EQ(scaled.interventions[0].duration, 40ms);
  EXPECT_EQ(scaled.interventions[1].duration, 10ms);
  EXPECT_EQ(with_longest_delay(Plan(), 40ms).interventions.size(), 0u);
}

}  // namespace
}  // namespace unflake
