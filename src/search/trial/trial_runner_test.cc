#include "search/trial/trial_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scripted_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Purpose = TrialEnded::Purpose;

struct Told : Consumer {
  void on(const Event& event) override {
    if (const auto* ended = std::get_if<TrialEnded>(&event)) trials.push_back(*ended);
  }
  std::vector<TrialEnded> trials;
};

// A runner of a test whose outcomes a function tells.
struct ScriptedRunner {
  explicit ScriptedRunner(MockExecutor::FullTruth truth, Duration budget = 1h, size_t slots = 1)
      : executor(std::move(truth), slots),
        runner(executor, ScriptedHunt::a_test(), events, budget) {
    events.add(told);
  }

  MockExecutor executor;
  EventStream events;
  Told told;
  TrialRunner runner;
};

Trial a_trial() {
  return {{}, {}, "because"};
}

MockExecutor::FullTruth fails_every(int nth_fails, Duration duration = 10ms) {
  return [=](const Experiment& experiment, int nth) {
    return nth % nth_fails == 0 ? fails(experiment, duration) : passes(experiment, duration);
  };
}

TEST(TrialRunner, Tells_every_run_with_its_purpose_and_number) {
  ScriptedRunner scripted(fails_every(2));
  scripted.runner.teller().begin("tested");
  for (const Purpose purpose : {Purpose::inject, Purpose::replay, Purpose::replay})
    ASSERT_TRUE(scripted.runner.run(a_trial(), purpose, {1s}));
  ASSERT_THAT(scripted.told.trials, SizeIs(3));
  const TrialEnded& last = scripted.told.trials.back();
  EXPECT_EQ(last.purpose, Purpose::replay);
  EXPECT_EQ(last.number, 2);
  EXPECT_EQ(last.strategy, "tested");
  EXPECT_EQ(last.why, "because");
  EXPECT_EQ(last.test->id.name, "Scripted");
}

TEST(TrialRunner, Counts_hits_by_purpose) {
  ScriptedRunner scripted(fails_every(3));
  for (int i = 0; i < 6; ++i) (void)scripted.runner.run(a_trial(), Purpose::confirm, {1s});
  EXPECT_EQ(scripted.runner.counted(Purpose::confirm), (Count{2, 6}));
  EXPECT_EQ(scripted.runner.counted(Purpose::baseline), Count{});
}

TEST(TrialRunner, What_it_is_after_is_a_hit) {
  ScriptedRunner scripted(fails_every(2));
  scripted.runner.aim_at(
      {[](const Trial&, const ExperimentResult& result) { return !result.outcome.failed(); },
       true});
  EXPECT_TRUE(scripted.runner.run(a_trial(), Purpose::candidate, {1s})->hit);
  EXPECT_FALSE(scripted.runner.run(a_trial(), Purpose::candidate, {1s})->hit);
  EXPECT_TRUE(scripted.told.trials.front().wants_pass);
}

TEST(TrialRunner, What_the_budget_cuts_short_has_shown_nothing) {
  ScriptedRunner scripted([](const Experiment& experiment, int) { return hangs(experiment); });
  EXPECT_FALSE(scripted.runner.run(a_trial(), Purpose::candidate, {10s, 2s}));
  ASSERT_TRUE(scripted.runner.cut_short());
  EXPECT_EQ(scripted.runner.cut_short()->outcome.duration, 2s);
  EXPECT_THAT(scripted.told.trials, IsEmpty());
  EXPECT_TRUE(scripted.runner.run(a_trial(), Purpose::candidate, {2s, 10s}));
  EXPECT_FALSE(scripted.runner.cut_short());
}

TEST(TrialRunner, Makes_no_run_after_somebody_asked_to_stop) {
  ScriptedRunner scripted(fails_every(2));
  scripted.executor.interrupt_after(0, Stopped{});
  EXPECT_FALSE(scripted.runner.run(a_trial(), Purpose::candidate, {1s}));
  EXPECT_TRUE(scripted.runner.stopped());
  EXPECT_FALSE(scripted.runner.run(a_trial(), Purpose::candidate, {1s}));
  EXPECT_THAT(scripted.executor.started(), SizeIs(1));
}

TEST(TrialRunner, A_series_ends_when_it_is_enough) {
  ScriptedRunner scripted(fails_every(4));
  const int started = scripted.runner.run_series(a_trial(), Purpose::setting, 1s, {100, 1},
                                                 [](const Observation& seen) { return seen.hit; });
  EXPECT_EQ(started, 4);
}

TEST(TrialRunner, A_series_may_run_side_by_side_and_ends_with_the_budget) {
  ScriptedRunner scripted(fails_every(1000, 1s), 5s, 3);
  const int started = scripted.runner.run_series(a_trial(), Purpose::setting, 10s, {100, 2},
                                                 [](const Observation&) { return false; });
  EXPECT_EQ(scripted.executor.most_at_once(), 2u);
  EXPECT_EQ(started, 10);
  EXPECT_THAT(scripted.told.trials, SizeIs(10));
}

Confirmation::Runs counted_runs(double with, double without, int most = 1000) {
  auto made = std::make_shared<Count>();
  Confirmation::Runs runs;
  runs.with_plan = [=]() -> std::optional<bool> {
    if (made->runs == most) return std::nullopt;
    made->add(made->hits < with * (made->runs + 1));
    return made->hits >= with * made->runs;
  };
  runs.without_plan = [=](int wanted) { return Count{static_cast<int>(without * wanted), wanted}; };
  runs.has_ended = [] { return false; };
  return runs;
}

TEST(Confirmation, Holds_what_always_comes_with_the_plan_and_never_without) {
  Confirmation confirmation(1, 0);
  EXPECT_EQ(confirmation(counted_runs(1, 0)), Confirmation::Answer::holds);
  EXPECT_EQ(confirmation.with_plan(), (Count{5, 5}));
  EXPECT_EQ(confirmation.without_plan(), (Count{0, 5}));
}

TEST(Confirmation, Takes_more_runs_the_more_candidates_there_were) {
  Confirmation confirmation(1000, 0);
  EXPECT_EQ(confirmation(counted_runs(1, 0)), Confirmation::Answer::holds);
  EXPECT_GT(confirmation.with_plan().runs, 5);
}

TEST(Confirmation, Does_not_hold_what_comes_as_often_without) {
  Confirmation confirmation(1, 0);
  EXPECT_EQ(confirmation(counted_runs(1, 1)), Confirmation::Answer::does_not);
}

TEST(Confirmation, Says_when_there_was_no_time_to_tell) {
  Confirmation confirmation(1, 0);
  EXPECT_EQ(confirmation(counted_runs(1, 0, 3)), Confirmation::Answer::no_time);
}

}  // namespace
}  // namespace unflake
