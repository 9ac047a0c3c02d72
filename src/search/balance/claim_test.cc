#include "search/balance/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "stats/rates.h"
#include "support/simulated_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Answer = ClaimReport::Answer;
using simulated::Program;
using simulated::Script;

// A worker needs between `needs` and twice as long; main sleeps `asked` and then looks.
Program napping(Duration asked, Duration needs) {
  Program program;
  Script& worker = program.thread();
  worker.work(needs).set("ready");
  program.main()
      .create("main.cc:10", worker)
      .sleep("main.cc:11", asked)
      .check("main.cc:12", simulated::is_set("ready"))
      .join("main.cc:13", worker);
  program.jitter = needs;
  return program;
}

ClaimOptions claim(Duration from, Duration to) {
  ClaimOptions options;
  options.from = from;
  options.to = to;
  options.loads = {LoadLevel::idle};
  options.plan.agent = options.plan.calls = true;
  options.limits.budget = 24h;
  return options;
}

Result<ClaimReport> checked(const Program& program, const ClaimOptions& options) {
  MockExecutor executor = simulated::executor_of(program);
  EventStream events;
  return check_claim(executor, simulated::test_of(program), options, events);
}

TEST(Claim, A_value_that_is_long_enough_fails_less) {
  const auto report = checked(napping(100ms, 40ms), claim(40ms, 100ms));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->loads[0].answer, Answer::fails_less);
  EXPECT_LT(report->loads[0].p_value, 0.05);
  EXPECT_EQ(report->loads[0].with_to.hits, 0);
}

TEST(Claim, Clear_cases_take_few_runs) {
  const auto report = checked(napping(100ms, 40ms), claim(20ms, 100ms));
  EXPECT_EQ(report->loads[0].answer, Answer::fails_less);
  EXPECT_LE(report->loads[0].with_to.runs, 20);
}

TEST(Claim, A_value_that_changes_nothing_is_called_that) {
  Program program = napping(300ms, 40ms);
  program.failure_rate = 0.2;
  const auto report = checked(program, claim(150ms, 300ms));
  EXPECT_EQ(report->loads[0].answer, Answer::no_difference);
  EXPECT_GT(report->loads[0].detectable, 0);
  EXPECT_LT(report->loads[0].detectable, 0.2);
}

TEST(Claim, Two_values_that_never_fail_cannot_be_told_apart) {
  const auto report = checked(napping(300ms, 40ms), claim(200ms, 300ms));
  EXPECT_EQ(report->loads[0].answer, Answer::cannot_tell);
  EXPECT_EQ(report->loads[0].with_from.runs, 320);
  EXPECT_EQ(report->loads[0].more_runs, 0);
}

// At the rate that would have shown, it nearly always does.
TEST(Claim, A_drop_to_the_rate_that_would_have_shown_shows) {
  Program program = napping(300ms, 40ms);
  program.failure_rate = 0.2;
  const auto report = checked(program, claim(150ms, 300ms));
  const double rate = report->loads[0].detectable;
  const Count& from = report->loads[0].with_from;
  const double error = 0.05 / (2 * 6);
  int shown = 0;
  std::mt19937 random(7);
  std::binomial_distribution<int> hits(from.runs, rate);
  for (int i = 0; i < 1000; ++i)
    shown += fisher_more_often(from.hits, from.runs, hits(random), from.runs) <= error;
  EXPECT_GE(shown, 930);
}

TEST(Claim, The_loads_share_the_time_and_what_is_left_out_is_told) {
  Program program = napping(300ms, 40ms);
  program.failure_rate = 0.2;
  ClaimOptions options = claim(150ms, 300ms);
  options.loads = {LoadLevel::idle, LoadLevel::busy, LoadLevel::one_core};
  options.limits.budget = 60s;
  const auto report = checked(program, options);
  ASSERT_EQ(report->loads.size(), 3u);
  for (const ClaimReport::AtLoad& at : report->loads) EXPECT_GE(at.with_to.runs, 10);
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("used up at the load `busy`")));
}

TEST(Claim, A_skipped_test_has_no_fix_to_check) {
  const Program program = napping(300ms, 40ms);
  const auto skipped = [&](const Experiment& experiment, int nth) {
    ExperimentResult result = simulated::run(program, experiment, nth);
    result.outcome.kind = OutcomeKind::skipped;
    return result;
  };
  MockExecutor executor((MockExecutor::FullTruth(skipped)));
  EventStream events;
  const auto report =
      check_claim(executor, simulated::test_of(program), claim(150ms, 300ms), events);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->loads.empty());
  EXPECT_THAT(report->notes, testing::Contains("the test was skipped"));
}

TEST(Claim, Says_so_when_it_is_stopped_before_the_value_was_found) {
  const Program program = napping(300ms, 40ms);
  MockExecutor executor = simulated::executor_of(program);
  executor.interrupt_after(0, Stopped{});
  EventStream events;
  const auto report =
      check_claim(executor, simulated::test_of(program), claim(150ms, 300ms), events);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->interrupted);
}

TEST(Claim, A_value_that_makes_it_worse_is_called_that) {
  const auto report = checked(napping(100ms, 40ms), claim(100ms, 30ms));
  EXPECT_EQ(report->loads[0].answer, Answer::fails_more);
}

TEST(Claim, Too_few_runs_cannot_tell) {
  const Program program = napping(100ms, 40ms);
  ClaimOptions options = claim(60ms, 100ms);
  options.most_runs = 10;
  const auto report = checked(program, options);
  EXPECT_EQ(report->loads[0].answer, Answer::cannot_tell);
}

TEST(Claim, Runs_take_turns) {
  const Program program = napping(90ms, 40ms);
  MockExecutor executor = simulated::executor_of(program);
  EventStream events;
  (void)check_claim(executor, simulated::test_of(program), claim(40ms, 90ms), events);
  const auto& started = executor.started();
  ASSERT_GT(started.size(), 10u);
  const auto value = [&](size_t back) {
    const auto& plan = started[started.size() - 1 - back].plan.interventions;
    return plan.empty() ? Duration::zero() : plan[0].duration;
  };
  EXPECT_NE(value(0), value(1));
  EXPECT_EQ(value(0), value(2));
}

TEST(Claim, A_value_that_the_test_does_not_have_is_an_error_that_names_those_it_has) {
  ClaimOptions options = claim(40ms, 90ms);
  options.site = "main.cc:99";
  const auto report = checked(napping(100ms, 40ms), options);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().next, testing::HasSubstr("main.cc:11"));
}

// Of fixes that change nothing no more than the error that is allowed are believed.
TEST(Claim, Fixes_that_change_nothing_are_rarely_believed) {
  int believed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Program program = napping(300ms, 20ms);
    program.failure_rate = 0.3;
    program.seed = seed;
    ClaimOptions options = claim(200ms, 300ms);
    options.most_runs = 80;
    const auto report = checked(program, options);
    believed += report->loads[0].answer == Answer::fails_less;
  }
  EXPECT_LE(believed, 4);
}

}  // namespace
}  // namespace unflake
