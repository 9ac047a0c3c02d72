#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/simulated_balance.h"

// What a search must not believe.
namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::at_idle;
using simulated::balanced;
using simulated::Program;
using simulated::sleeper;
using simulated::value_at;
using testing::Contains;
using testing::HasSubstr;
using Change = BalancedValue::Change;

BalanceOptions also_on_one_core() {
  BalanceOptions options = at_idle();
  options.loads = {LoadLevel::idle, LoadLevel::one_core};
  return options;
}

// Runs of the program as they would be, and then what `change` makes of them.
using Altered = std::function<void(const Experiment&, int nth, ExperimentResult&)>;

class Altering {
 public:
  Altering(const Program& program, Altered change, size_t slots = 1)
      : program_(program),
        executor_(MockExecutor::FullTruth([this, change](const Experiment& experiment, int nth) {
                    ExperimentResult result = simulated::run(program_, experiment, nth);
                    change(experiment, nth, result);
                    return result;
                  }),
                  slots) {}

  Result<BalanceReport> operator()(const BalanceOptions& options) {
    EventStream events;
    return balance(executor_, simulated::test_of(program_), options, events);
  }
  MockExecutor& executor() { return executor_; }

 private:
  const Program& program_;
  MockExecutor executor_;
};

// Four at once are allowed, and `disturb` is what becomes of a run that has company.
Result<BalanceReport> balanced_in_company(const std::function<void(Outcome&)>& disturb) {
  const Program program = sleeper(200ms, 50ms);
  Altering* running = nullptr;
  Altering altering(
      program,
      [&](const Experiment&, int, ExperimentResult& result) {
        const MockExecutor& executor = running->executor();
        if (executor.free_slots() < executor.slots()) disturb(result.outcome);
      },
      4);
  running = &altering;
  BalanceOptions options = at_idle();
  options.limits.at_once = 4;
  return altering(options);
}

TEST(BalanceDoubt, A_test_that_can_have_no_company_is_measured_alone) {
  const auto report =
      balanced_in_company([](Outcome& outcome) { outcome.kind = OutcomeKind::fail; });
  EXPECT_EQ(report->at_once, 1);
  EXPECT_EQ(report->base.front().failures.hits, 0);
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::shorten);
}

TEST(BalanceDoubt, Company_that_slows_a_test_down_does_not_count_in_its_run_time) {
  const auto report = balanced_in_company([](Outcome& outcome) { outcome.duration *= 2; });
  EXPECT_EQ(report->at_once, 1);
  EXPECT_LT(report->base.front().run_time.max, 250);
}

TEST(BalanceDoubt, Runs_that_were_skipped_do_not_prove_a_value) {
  const Program program = sleeper(200ms, 50ms);
  Altering altering(program, [](const Experiment&, int, ExperimentResult& result) {
    if (!result.outcome.failed()) return;
    result.outcome = Outcome();
    result.outcome.kind = OutcomeKind::skipped;
  });
  const auto report = altering(at_idle());
  EXPECT_GE(value_at(*report, "main.cc:11")->proposed, 50ms);
}

TEST(BalanceDoubt, A_change_that_never_took_effect_proves_nothing) {
  const Program program = sleeper(200ms, 50ms);
  Altering altering(program, [&](const Experiment& experiment, int nth, ExperimentResult& result) {
    if (experiment.plan.interventions.empty()) return;
    Experiment unchanged = experiment;
    unchanged.plan.interventions.clear();
    result = simulated::run(program, unchanged, nth);
    auto trace = std::make_shared<Trace>(*result.trace);
    trace->interventions.resize(1);
    result.trace = trace;
  });
  const auto report = altering(at_idle());
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->change, Change::keep);
  EXPECT_EQ(value->proposed, 200ms);
  EXPECT_THAT(value->reason, HasSubstr("no run with another time came to it"));
}

TEST(BalanceDoubt, One_failure_among_many_runs_does_not_make_a_value_longer) {
  const Program program = sleeper(200ms, 50ms);
  Altering altering(program, [](const Experiment&, int nth, ExperimentResult& result) {
    if (nth == 10) result.outcome.kind = OutcomeKind::fail;
  });
  const auto report = altering(at_idle());
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::shorten);
  EXPECT_THAT(report->notes, Contains(HasSubstr("not clearly less often")));
}

TEST(BalanceDoubt, Values_of_a_test_that_fails_for_another_reason_are_not_made_longer) {
  int raised = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Program program = sleeper(150ms, 50ms);
    program.failure_rate = 0.1;
    program.seed = seed;
    const auto report = balanced(program);
    raised += value_at(*report, "main.cc:11")->change == Change::raise;
  }
  EXPECT_LE(raised, 1);
}

TEST(BalanceDoubt, A_wait_that_is_now_and_then_too_short_is_made_longer) {
  int raised = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program = sleeper(57ms, 50ms);
    program.jitter = 20ms;
    program.seed = seed;
    const auto report = balanced(program);
    raised += value_at(*report, "main.cc:11")->change == Change::raise;
  }
  EXPECT_GE(raised, 18) << "of 20";
}

TEST(BalanceDoubt, What_failed_at_a_load_is_not_proposed_when_the_search_ends_there) {
  const Program program = sleeper(400ms, 50ms);
  Altering* running = nullptr;
  bool is_stopped = false;
  Altering altering(program, [&](const Experiment& experiment, int, ExperimentResult& result) {
    const bool is_shorter = !experiment.plan.interventions.empty();
    if (is_stopped || !experiment.conditions.one_core || !is_shorter || result.outcome.failed())
      return;
    running->executor().interrupt_after(0, Stopped{});
    is_stopped = true;
  });
  running = &altering;
  const auto report = altering(also_on_one_core());
  ASSERT_TRUE(report->interrupted);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->proposed, 400ms);
  EXPECT_THAT(value->reason, HasSubstr("`one core`"));
}

TEST(BalanceDoubt, A_load_that_was_not_tried_is_told) {
  const Program program = sleeper(400ms, 50ms);
  Altering* running = nullptr;
  bool is_stopped = false;
  Altering altering(program, [&](const Experiment& experiment, int, ExperimentResult&) {
    if (!experiment.conditions.one_core || std::exchange(is_stopped, true)) return;
    running->executor().interrupt_after(0, Stopped{});
  });
  running = &altering;
  const auto report = altering(also_on_one_core());
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::shorten);
  EXPECT_THAT(report->notes, Contains(HasSubstr("at these loads: one core")));
}

TEST(BalanceDoubt, What_nothing_needs_stays_out_when_another_value_must_be_longer_at_a_load) {
  Program program = sleeper(400ms, 50ms);
  program.main().sleep("main.cc:20", 800ms);
  const auto report = balanced(program, also_on_one_core());
  EXPECT_GE(value_at(*report, "main.cc:11")->proposed, 100ms);
  EXPECT_EQ(value_at(*report, "main.cc:20")->proposed, 0ms);
}

TEST(BalanceDoubt, A_value_that_is_too_short_for_a_slower_machine_is_kept_and_called_that) {
  BalanceOptions options = at_idle();
  options.scale = 4;
  const auto report = balanced(sleeper(200ms, 64ms), options);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->proposed, 200ms);
  EXPECT_THAT(value->reason, HasSubstr("may be too short on the other machine"));
}

TEST(BalanceDoubt, A_site_may_be_named_with_its_folders) {
  BalanceOptions options = at_idle();
  options.sites = {"project/main.cc:11"};
  const auto report = balanced(sleeper(200ms, 50ms), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::shorten);
}

TEST(BalanceDoubt, A_site_is_not_taken_for_one_that_begins_or_ends_alike) {
  BalanceOptions options = at_idle();
  for (const char* other : {"main.cc:1", "other/main.cc:11", "domain.cc:11", "main.cc:11:poll"}) {
    options.sites = {other};
    EXPECT_FALSE(balanced(sleeper(200ms, 50ms), options)) << other;
  }
}

}  // namespace
}  // namespace unflake
