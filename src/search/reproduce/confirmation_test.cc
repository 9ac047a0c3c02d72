#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scripted_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int seeds = 200;

// Whether one of some different plans was confirmed, each of which is tried until it hits.
bool confirms_any(ScriptedHunt& scripted, int plans, int runs_each) {
  if (!scripted.hunt.prepare()) return false;
  for (int line = 1; line <= plans; ++line) {
    const Trial trial = late_at(scripted.hunt, line);
    for (int run = 0; run < runs_each; ++run) {
      const auto seen = scripted.hunt.observe(trial);
      if (seen && seen->hit && scripted.hunt.confirm(trial, *seen)) return true;
    }
  }
  return false;
}

HuntOptions with_endless_time() {
  HuntOptions options;
  options.budget = 100h;
  return options;
}

int confirmations(double plain, double late, int plans, int runs_each) {
  int confirmed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ScriptedHunt scripted(by_chance(plain, late, seed), with_endless_time());
    confirmed += confirms_any(scripted, plans, runs_each);
  }
  return confirmed;
}

TEST(Confirmation, Of_plans_that_do_nothing_is_as_rare_as_promised) {
  EXPECT_LE(confirmations(0.4, 0.4, 1, 5), seeds * 0.05);
  EXPECT_LE(confirmations(0.4, 0.4, 10, 1), seeds * 0.05);
}

TEST(Confirmation, Of_plans_that_do_nothing_to_what_mostly_fails_is_as_rare) {
  EXPECT_LE(confirmations(0.7, 0.7, 10, 1), seeds * 0.05);
}

TEST(Confirmation, Finds_nearly_every_plan_that_makes_a_failure_nearly_certain) {
  EXPECT_GE(confirmations(0.4, 0.95, 1, 5), seeds * 0.75) << "some look like failing mostly";
  EXPECT_GE(confirmations(0.2, 0.95, 1, 5), seeds * 0.95);
  EXPECT_GE(confirmations(0, 0.95, 1, 5), seeds * 0.95);
}

TEST(Confirmation, Finds_nearly_every_plan_that_makes_a_pass_nearly_certain) {
  EXPECT_GE(confirmations(0.9, 0.05, 1, 5), seeds * 0.9);
}

TEST(Confirmation, Refuses_what_comes_back_in_fewer_than_three_of_five_runs) {
  EXPECT_LE(confirmations(0, 0.3, 1, 1), seeds * 0.1);
}

TEST(Confirmation, Takes_five_runs_each_way_when_they_are_clear) {
  ScriptedHunt scripted(by_chance(0, 1, 1));
  ASSERT_TRUE(confirms_any(scripted, 1, 1));
  const Found& found = scripted.hunt.found()[0];
  EXPECT_EQ(found.with_plan, (Count{5, 5}));
  EXPECT_EQ(found.without_plan, (Count{0, 5}));
  EXPECT_EQ(found.candidates, 1);
  EXPECT_THAT(scripted.said, Contains(HasSubstr("holds: 5 of 5")));
}

TEST(Confirmation, Asks_for_more_the_more_plans_were_tried) {
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        const auto& late = experiment.plan.interventions;
        const bool is_bad = !late.empty() && late[0].site.line == 30;
        return is_bad ? fails(experiment, 1ms) : passes(experiment, 1ms);
      },
      with_endless_time());
  ASSERT_TRUE(confirms_any(scripted, 30, 1));
  EXPECT_EQ(scripted.hunt.found()[0].candidates, 30);
  EXPECT_EQ(scripted.hunt.found()[0].with_plan, (Count{10, 10}));
}

TEST(Confirmation, Counts_a_plan_that_was_tried_often_once) {
  ScriptedHunt scripted([](const Experiment& experiment, int nth) {
    const bool is_bad = !experiment.plan.interventions.empty() && nth >= 30;
    return is_bad ? fails(experiment, 1ms) : passes(experiment, 1ms);
  });
  ASSERT_TRUE(confirms_any(scripted, 1, 30));
  EXPECT_EQ(scripted.hunt.found()[0].candidates, 1);
}

TEST(Confirmation, Of_another_failure_than_that_of_the_hit_does_not_count) {
  ScriptedHunt scripted([](const Experiment& experiment, int nth) {
    if (experiment.plan.interventions.empty()) return passes(experiment, 1ms);
    return fails(experiment, 1ms, failure_at("scripted.cc", nth));
  });
  EXPECT_FALSE(confirms_any(scripted, 1, 1));
  EXPECT_EQ(scripted.hunt.coverage().unconfirmed, 1);
  EXPECT_THAT(scripted.said, Contains(HasSubstr("did not hold")));
}

TEST(Confirmation, Makes_no_plain_runs_for_what_does_not_come_back) {
  ScriptedHunt scripted([](const Experiment& experiment, int nth) {
    const bool is_bad = !experiment.plan.interventions.empty() && nth == 6;
    return is_bad ? fails(experiment, 1ms) : passes(experiment, 1ms);
  });
  EXPECT_FALSE(confirms_any(scripted, 1, 1));
  EXPECT_EQ(scripted.hunt.runner().counted(TrialEnded::Purpose::confirm).runs, 3);
  EXPECT_EQ(scripted.hunt.runner().counted(TrialEnded::Purpose::baseline).runs, 0);
}

// The hit comes with the last of the time, and five runs each way cannot tell it from chance.
TEST(Confirmation, Says_what_is_missing_when_the_budget_ends_before_it) {
  HuntOptions options;
  options.budget = 175s;
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        const auto& late = experiment.plan.interventions;
        const bool is_bad = !late.empty() && late[0].site.line >= 8;
        return is_bad ? fails(experiment, 7s) : passes(experiment, 7s);
      },
      options);
  EXPECT_FALSE(confirms_any(scripted, 8, 1));
  EXPECT_LE(scripted.hunt.runner().elapsed(), options.budget);
  EXPECT_EQ(scripted.hunt.coverage().unconfirmed, 0);
  ASSERT_THAT(scripted.hunt.coverage().unfinished, SizeIs(1));
  const Found& found = scripted.hunt.coverage().unfinished[0];
  EXPECT_GE(found.with_plan.hits, 5);
  EXPECT_EQ(found.with_plan.hits, found.with_plan.runs);
  EXPECT_THAT(scripted.said, Contains(HasSubstr("no time left to tell it from chance")));
}

// Whatever takes longer than the rest of the budget is not begun; a run that does not stop is
// stopped.
TEST(Confirmation, Of_a_hang_ends_with_the_budget) {
  HuntOptions options;
  options.budget = 10s;
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        return experiment.plan.interventions.empty() ? passes(experiment, 10ms) : hangs(experiment);
      },
      options);
  EXPECT_FALSE(confirms_any(scripted, 1, 1));
  EXPECT_LE(scripted.hunt.runner().elapsed(), options.budget);
  EXPECT_THAT(scripted.hunt.coverage().unfinished, SizeIs(1));
}

TEST(Confirmation, Judges_by_the_runs_that_there_was_time_for) {
  HuntOptions options;
  options.budget = 185s;
  ScriptedHunt scripted(
      [](const Experiment& experiment, int) {
        const auto& late = experiment.plan.interventions;
        const bool is_bad = !late.empty() && late[0].site.line >= 8;
        return is_bad ? fails(experiment, 7s) : passes(experiment, 7s);
      },
      options);
  ASSERT_TRUE(confirms_any(scripted, 8, 1));
  EXPECT_GT(scripted.hunt.found()[0].with_plan.runs, 5);
  EXPECT_LT(scripted.hunt.found()[0].with_plan.runs, 10);
}

TEST(Confirmation, Of_a_hang_is_a_failure_of_its_own_kind) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    return experiment.plan.interventions.empty() ? passes(experiment, 10ms) : hangs(experiment);
  });
  ASSERT_TRUE(confirms_any(scripted, 1, 1));
  EXPECT_EQ(scripted.hunt.found()[0].outcome.kind, OutcomeKind::timeout);
  EXPECT_EQ(scripted.hunt.found()[0].outcome.failures[0].kind, FailureKind::timeout);
}

TEST(Confirmation, Does_not_take_a_slow_run_for_a_hang) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    if (experiment.plan.interventions.empty()) return passes(experiment, 10ms);
    return experiment.timeout < 5s ? hangs(experiment) : passes(experiment, 5s);
  });
  EXPECT_FALSE(confirms_any(scripted, 1, 1));
  EXPECT_THAT(scripted.hunt.found(), IsEmpty());
}

TEST(Confirmation, Takes_a_slow_run_for_what_it_came_to_at_last) {
  ScriptedHunt scripted([](const Experiment& experiment, int) {
    if (experiment.plan.interventions.empty()) return passes(experiment, 10ms);
    return experiment.timeout < 5s ? hangs(experiment) : fails(experiment, 5s);
  });
  ASSERT_TRUE(confirms_any(scripted, 1, 1));
  EXPECT_EQ(scripted.hunt.found()[0].outcome.kind, OutcomeKind::fail);
  EXPECT_GE(scripted.hunt.found()[0].timeout, 5s);
}

}  // namespace
}  // namespace unflake
