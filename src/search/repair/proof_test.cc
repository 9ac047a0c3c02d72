#include "search/repair/proof.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "search/repair/proof_side.h"
#include "search/repair/proof_verdict.h"
#include "support/controlled_test.h"
#include "support/simulated_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::Script;
using Kind = ProofRuns::Kind;

constexpr const char* place_of_check = "post_test.cc:45";

// A carrier that takes 10 ms, and a test that waits for it in one way or another.
Program post_office(const std::function<void(Script& main, const Script& carrier)>& wait,
                    bool has_check = true) {
  Program program;
  Script& carrier = program.thread();
  carrier.call("post_test.cc:22", "usleep")
      .work(10ms)
      .set("delivered")
      .signal("post_test.cc:24", "bell");
  program.main().create("post_test.cc:20", carrier);
  wait(program.main(), carrier);
  if (has_check) program.main().check(place_of_check, is_set("delivered"));
  program.main().join("post_test.cc:46", carrier);
  return program;
}

Program sleeping(Duration time) {
  return post_office([time](Script& main, const Script&) { main.sleep("post_test.cc:44", time); });
}

Repro late_by(Duration delay, std::optional<Slack> slack = Slack{30ms, 42ms}) {
  Repro repro;
  repro.test = {"simulated_test", "Test"};
  repro.failure.kind = FailureKind::assertion;
  repro.failure.file = "post_test.cc";
  repro.failure.line = 45;
  repro.slack = slack;
  Intervention what;
  what.site = *parse_site("post_test.cc:22:usleep");
  what.threads = Intervention::Threads::named;
  what.thread = simulated::thread_named("post_test.cc:20#1");
  what.duration = delay;
  repro.plan.interventions = {what};
  repro.plan.agent = true;
  return repro;
}

bool is_at_check(const Outcome& outcome) {
  return outcome.failed() && !outcome.failures.empty() &&
         outcome.failures.front().file.ends_with("post_test.cc") &&
         outcome.failures.front().line == 45;
}

class ProofTest : public testing::Test {
 protected:
  Proof compare(MockExecutor before, MockExecutor after) {
    options.wanted = options.repro.failure;
    options.timeout = 1min;
    options.budget = 1h;
    ProofSide one = side(before), other = side(after);
    one.signature = before_signature;
    if (after_has_no_plan) other.why_no_plan = "gone: post_test.cc:22:usleep";
    if (!options.changed_check.empty()) other.check.reset();
    auto proof = prove(one, other, options);
    EXPECT_TRUE(proof);
    return proof ? *proof : Proof{};
  }

  Proof compare(const Program& before, const Program& after) {
    return compare(simulated::executor_of(before), simulated::executor_of(after));
  }

  ProofSide side(MockExecutor& executor) {
    ProofSide one{executor, test_, events_, options.repro.plan, "", is_recorded, {},
                  {},       {},    "none"};
    one.check = parse_site(place_of_check).value();
    return one;
  }

  static std::string said(const Proof& proof) { return proof.why; }

  ProofTest() { options.repro = late_by(100ms); }

  ProofOptions options;
  std::function<bool(const Outcome&)> is_recorded = is_at_check;
  bool after_has_no_plan = false;
  std::function<std::string(const Outcome&)> before_signature{};

 private:
  EventStream events_;
  std::shared_ptr<const unflake::Test> test_ = simulated::test_of(Program{});
};

TEST_F(ProofTest, Whoever_waits_for_the_event_has_repaired_it) {
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Proof proof = compare(sleeping(50ms), joined);
  EXPECT_EQ(proof.verdict, Proof::Verdict::repaired) << proof.why;
  ASSERT_NE(proof.find(Kind::under_plan), nullptr);
  EXPECT_EQ(proof.find(Kind::under_plan)->before, (Count{20, 20}));
  EXPECT_EQ(proof.find(Kind::under_plan)->after, (Count{0, 100}));
  EXPECT_EQ(proof.find(Kind::plain)->after, (Count{0, 100}));
  EXPECT_LT(proof.rate_below, 0.02);
  ASSERT_TRUE(proof.overhead);
  EXPECT_LT(proof.overhead->high, 1);
}

TEST_F(ProofTest, Runs_that_wait_are_made_side_by_side) {
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Program slept = sleeping(50ms);
  options.cores = 2;
  const auto elapsed_with = [&](size_t slots) {
    MockExecutor before = simulated::executor_of(slept, slots);
    MockExecutor after = simulated::executor_of(joined, slots);
    ProofSide one = side(before), other = side(after);
    options.wanted = options.repro.failure;
    options.timeout = 1min;
    options.budget = 1h;
    const auto proof = prove(one, other, options);
    if (!proof || proof->verdict != Proof::Verdict::repaired) {
      ADD_FAILURE() << (proof ? proof->why : "");
      return Duration{};
    }
    EXPECT_EQ(proof->find(Kind::under_plan)->after, (Count{0, 100}));
    EXPECT_EQ(proof->find(Kind::plain)->after, (Count{0, 100}));
    EXPECT_EQ(proof->find(Kind::busy)->after, (Count{0, 20}));
    return before.elapsed() + after.elapsed();
  };
  EXPECT_LT(2 * elapsed_with(4), elapsed_with(1));
}

// It has a port of its own, say: of two at once, one fails.
TEST_F(ProofTest, Schedules_are_sampled_one_by_one_where_the_test_bears_no_company) {
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Program slept = sleeping(50ms);
  options.cores = 2;
  int collisions = 0;
  const auto with_port = [&](const Program& program, MockExecutor*& self) {
    return MockExecutor(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
                          ExperimentResult result = simulated::run(program, experiment, nth);
                          if (experiment.plan.schedule && result.trace)
                            result = simulated::under_control(std::move(result));
                          if (self->free_slots() == self->slots()) return result;
                          ++collisions;
                          Failure refused;
                          refused.kind = FailureKind::assertion;
                          refused.file = "port.cc";
                          refused.line = 7;
                          result.outcome.kind = OutcomeKind::fail;
                          result.outcome.failures = {refused};
                          result.outcome.signature = signature_of(refused);
                          return result;
                        }),
                        4);
  };
  MockExecutor *one_self = nullptr, *other_self = nullptr;
  MockExecutor before = with_port(slept, one_self), after = with_port(joined, other_self);
  one_self = &before, other_self = &after;
  ProofSide one = side(before), other = side(after);
  options.wanted = options.repro.failure;
  options.timeout = 1min;
  options.budget = 1h;
  const auto proof = prove(one, other, options);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, Proof::Verdict::repaired) << proof->why;
  EXPECT_LE(collisions, 6);  // only while that was tried
}

TEST_F(ProofTest, A_longer_sleep_passes_the_old_plan_and_is_no_repair) {
  const Proof proof = compare(sleeping(50ms), sleeping(300ms));
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_EQ(proof.find(Kind::under_plan)->after.hits, 0);
  EXPECT_NE(proof.why.find("late"), std::string::npos) << proof.why;
}

TEST_F(ProofTest, A_sleep_beyond_all_plausible_lateness_has_bought_time_with_time) {
  const Proof proof = compare(sleeping(50ms), sleeping(5s));
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_NE(proof.why.find("still comes when a thread is 6"), std::string::npos) << proof.why;
}

TEST_F(ProofTest, A_bounded_wait_is_a_repair) {
  const Program bounded = post_office([](Script& main, const Script&) {
    main.wait_for("post_test.cc:44", "bell", 5s, is_set("delivered"));
  });
  const Proof proof = compare(sleeping(50ms), bounded);
  EXPECT_EQ(proof.verdict, Proof::Verdict::repaired) << proof.why;
  EXPECT_EQ(proof.latest, 1s);
}

TEST_F(ProofTest, A_bounded_wait_that_a_busy_machine_outlasts_is_none) {
  const Program bounded = post_office([](Script& main, const Script&) {
    main.wait_for("post_test.cc:44", "bell", 200ms, is_set("delivered"));
  });
  EXPECT_EQ(compare(sleeping(50ms), bounded).verdict, Proof::Verdict::not_repaired);
}

TEST_F(ProofTest, A_long_recorded_delay_does_not_count_against_a_bounded_wait) {
  options.repro = late_by(20s);
  const Program bounded = post_office([](Script& main, const Script&) {
    main.wait_for("post_test.cc:44", "bell", 5s, is_set("delivered"));
  });
  const Proof proof = compare(sleeping(50ms), bounded);
  EXPECT_EQ(proof.verdict, Proof::Verdict::repaired) << proof.why;
}

TEST_F(ProofTest, Nothing_is_said_of_a_failure_that_does_not_come_without_the_patch) {
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Proof proof = compare(joined, joined);
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_shown);
  EXPECT_NE(proof.why.find("without the patch either"), std::string::npos);
}

TEST_F(ProofTest, A_patch_that_leaves_it_as_it_was_is_refused_at_once) {
  const Proof proof = compare(sleeping(50ms), sleeping(50ms));
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_LE(proof.runs_with_patch, 2);
}

TEST_F(ProofTest, A_failure_that_only_moved_is_worse) {
  Program moved = sleeping(50ms);
  moved.main() = Script();
  moved.main()
      .create("post_test.cc:20", moved.scripts.back())
      .sleep("post_test.cc:44", 50ms)
      .check("post_test.cc:50", is_set("delivered"))
      .join("post_test.cc:46", moved.scripts.back())
      .check(place_of_check, is_set("delivered"));
  const Proof proof = compare(sleeping(50ms), moved);
  EXPECT_EQ(proof.verdict, Proof::Verdict::worse);
  EXPECT_NE(proof.why.find("post_test.cc:50"), std::string::npos) << proof.why;
}

// The patch has moved the line of a check that fails on both sides, whatever the patch does.
TEST_F(ProofTest, Another_failure_that_was_there_before_is_none_of_the_patch) {
  const auto fails_at = [&](const char* place) {
    return post_office([place](Script& main, const Script&) {
      main.check(place, simulated::is_set("what never comes"));
    });
  };
  const Program before = fails_at("post_test.cc:30"), after = fails_at("post_test.cc:33");
  EXPECT_EQ(compare(before, after).verdict, Proof::Verdict::worse);
  before_signature = [](const Outcome& outcome) {
    Failure moved = outcome.failures.front();
    moved.line += 3;
    return signature_of(moved);
  };
  EXPECT_NE(compare(before, after).verdict, Proof::Verdict::worse);
}

TEST_F(ProofTest, A_check_that_is_no_longer_reached_is_no_repair) {
  const Program without =
      post_office([](Script& main, const Script&) { main.sleep("post_test.cc:44", 50ms); }, false);
  const Proof proof = compare(sleeping(50ms), without);
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_NE(proof.why.find("no longer"), std::string::npos) << proof.why;
}

TEST_F(ProofTest, A_changed_check_that_cannot_fail_shows_nothing) {
  options.changed_check = "EXPECT_EQ(office.delivered(), 1);";
  const Program without =
      post_office([](Script& main, const Script&) { main.sleep("post_test.cc:44", 50ms); }, false);
  const Proof proof = compare(sleeping(50ms), without);
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_shown);
  EXPECT_NE(proof.why.find("drops the check"), std::string::npos) << proof.why;
}

TEST_F(ProofTest, A_changed_check_that_fails_beyond_all_patience_has_teeth) {
  options.changed_check = "EXPECT_EQ(office.delivered(), 1);";
  const Program bounded = post_office([](Script& main, const Script&) {
    main.wait_for("post_test.cc:44", "bell", 5s, is_set("delivered"));
  });
  const Proof proof = compare(sleeping(50ms), bounded);
  EXPECT_EQ(proof.verdict, Proof::Verdict::repaired) << proof.why;
  EXPECT_TRUE(std::ranges::any_of(proof.not_covered, [](const std::string& line) {
    return line.find("is for you to say") != std::string::npos;
  }));
}

TEST_F(ProofTest, A_patch_that_hangs_is_worse) {
  const Program stuck = post_office([](Script& main, const Script&) {
    main.wait("post_test.cc:44", "other bell", is_set("never"));
  });
  EXPECT_EQ(compare(sleeping(50ms), stuck).verdict, Proof::Verdict::worse);
}

TEST_F(ProofTest, A_test_that_skips_itself_is_not_repaired) {
  const Program sound = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  MockExecutor skipping(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
    ExperimentResult result = simulated::run(sound, experiment, nth);
    result.outcome.kind = OutcomeKind::skipped;
    return result;
  }));
  const Program before = sleeping(50ms);
  const Proof proof = compare(simulated::executor_of(before), std::move(skipping));
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_NE(proof.why.find("skips"), std::string::npos);
}

TEST_F(ProofTest, Without_its_plan_a_patch_is_judged_by_a_new_search) {
  after_has_no_plan = true;
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Proof proof = compare(sleeping(50ms), joined);
  EXPECT_EQ(proof.verdict, Proof::Verdict::repaired) << proof.why;
  EXPECT_EQ(proof.find(Kind::search)->before, (Count{1, 1}));
  EXPECT_EQ(proof.find(Kind::search)->after, (Count{0, 1}));
  EXPECT_FALSE(proof.find(Kind::under_plan)->why_not.empty());
}

TEST_F(ProofTest, A_new_search_finds_what_the_old_plan_misses) {
  after_has_no_plan = true;
  const Proof proof = compare(sleeping(50ms), sleeping(60ms));
  EXPECT_EQ(proof.verdict, Proof::Verdict::not_repaired);
  EXPECT_NE(proof.why.find("new search"), std::string::npos) << proof.why;
}

TEST_F(ProofTest, Schedules_judge_what_is_under_control) {
  options.repro = Repro{};
  options.repro.plan.schedule = Schedule{};
  options.repro.plan.agent = true;
  options.schedules = 200;
  is_recorded = [](const Outcome& outcome) { return outcome.failed(); };
  const auto lost = simulated::lost_update(), locked = simulated::locked_updates();
  const Proof good = compare(simulated::executor_of(lost), simulated::executor_of(locked));
  EXPECT_EQ(good.verdict, Proof::Verdict::repaired) << good.why;
  EXPECT_EQ(good.find(Kind::schedules)->before.hits, 20);
  EXPECT_EQ(good.find(Kind::schedules)->after, (Count{0, 200}));
  const Proof bad = compare(simulated::executor_of(lost), simulated::executor_of(lost));
  EXPECT_EQ(bad.verdict, Proof::Verdict::not_repaired);
}

TEST(ProofVerdict, Runs_that_fail_after_a_long_wait_do_not_speak_for_a_patch) {
  Proof proof;
  proof.runs = {{Kind::plain, {0, 50}, {0, 50}, 0, 0, "", ""},
                {Kind::schedules, {9, 62}, {0, 40}, 0, 0, "", ""},
                {Kind::search, {1, 1}, {0, 1}, 0, 0, "", ""}};
  EXPECT_TRUE(is_shown(proof, 0));
  EXPECT_FALSE(is_shown(proof, 8)) << "nearly as many fail with it, only later";
  proof.runs[0].before = {20, 50};
  EXPECT_TRUE(is_shown(proof, 8)) << "plain runs have shown it";
}

TEST_F(ProofTest, A_small_budget_makes_fewer_runs_and_says_so) {
  const Program joined = post_office(
      [](Script& main, const Script& carrier) { main.join("post_test.cc:44", carrier); });
  const Program before = sleeping(50ms);
  MockExecutor one = simulated::executor_of(before), other = simulated::executor_of(joined);
  options.wanted = options.repro.failure;
  options.budget = 10s;
  ProofSide without = side(one), with = side(other);
  const auto proof = prove(without, with, options);
  ASSERT_TRUE(proof);
  EXPECT_LT(proof->find(Kind::under_plan)->after.runs, 100);
  EXPECT_LE(one.elapsed() + other.elapsed(), 12s);
}

TEST(Doses, Lateness_is_scaled_from_the_slack_up_to_what_a_machine_can_be_late) {
  Doses doses(late_by(100ms));
  doses.learn(100ms);
  EXPECT_EQ(doses.bound(), 1s);
  EXPECT_EQ(doses.of_plan(), 100ms);
  EXPECT_EQ(doses.others(), (std::vector<Duration>{42ms, 84ms, 168ms, 420ms, 1s}));
  EXPECT_EQ(doses.with_lateness(late_by(100ms).plan, 300ms).interventions[0].duration, 300ms);
}

TEST(Doses, A_generous_plan_is_cut_to_several_times_what_it_takes) {
  Doses doses(late_by(20s));
  doses.learn(20s);
  EXPECT_EQ(doses.of_plan(), 200ms);
  EXPECT_EQ(doses.with_lateness(late_by(20s).plan, 200ms).interventions[0].duration, 200ms);
}

TEST(Doses, A_failure_that_needs_more_has_a_higher_bound) {
  Doses doses(late_by(4s, Slack{3s, 4s}));
  doses.learn(4s);
  EXPECT_EQ(doses.bound(), 6s);
  EXPECT_EQ(doses.of_plan(), 4s);
}

TEST(Doses, A_delay_at_every_visit_meets_every_retry) {
  Plan plan = late_by(1s).plan;
  plan.interventions[0].visits = Intervention::Visits::only_nth;
  plan = at_every_visit(plan);
  EXPECT_EQ(plan.interventions[0].visits, Intervention::Visits::every);
  EXPECT_EQ(plan.interventions[0].threads, Intervention::Threads::in_class);
}

}  // namespace
}  // namespace unflake
