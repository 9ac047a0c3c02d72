#include "study/study.h"

#include <gtest/gtest.h>

#include "support/fake_store.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using FixVerdict = ClaimedFix::Verdict;

TimePoint day(int number) {
  return TimePoint(std::chrono::days(20'000 + number));
}

TestId named(const std::string& name) {
  return {"suite", name};
}

FlakyEpisode episode(const std::string& name, int opened, std::optional<int> closed) {
  FlakyEpisode one;
  one.test = named(name);
  one.signature = name + "-signature";
  one.opened = day(opened);
  if (closed) one.closed = day(*closed);
  return one;
}

FlakyTestRuns runs_of(const std::string& name, int64_t passes, int64_t failures,
                      Duration passing = 10ms, Duration failing = 10ms) {
  FlakyTestRuns runs;
  runs.test = named(name);
  runs.passes = passes;
  runs.failures = failures;
  if (passes > 0) runs.passing = {passes, passing, passing, passing, passing, passing, false};
  if (failures > 0) runs.failing = {failures, failing, failing, failing, failing, failing, false};
  return runs;
}

ProjectFacts with_claim(Tries before, Tries after) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 10)};
  const auto counts = [](Tries tries) {
    RunCounts one;
    one.failures = one.with_signature = tries.failures;
    one.passes = tries.runs - tries.failures;
    return one;
  };
  facts.claims = {{0, counts(before), counts(after), std::nullopt}};
  return facts;
}

TEST(Study_flaky_tests, A_test_is_closed_when_nothing_of_it_is_open) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 5), episode("b", 0, 5), episode("b", 1, std::nullopt),
                    episode("c", 0, std::nullopt)};
  facts.episodes[0].commit = "abc";
  facts.episodes[0].url = "https://example.org/1";
  const FlakyTestRow row = compute_flaky_tests(facts);
  EXPECT_EQ(row.flaky, 3);
  EXPECT_EQ(row.closed, 1);
  EXPECT_EQ(row.with_commit, 1);
  EXPECT_EQ(row.with_link, 1);
}

TEST(Study_flaky_tests, A_test_that_failed_since_is_not_closed) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 5)};
  facts.episodes[0].last_failure = day(6);
  EXPECT_EQ(compute_flaky_tests(facts).closed, 0);
}

TEST(Study_rates, Are_of_the_tests_that_both_passed_and_failed) {
  ProjectFacts facts;
  facts.tests = {runs_of("a", 90, 10), runs_of("b", 70, 30), runs_of("c", 50, 0)};
  facts.tests[1].has_repro = true;
  const RateRow row = compute_rates(facts);
  EXPECT_EQ(row.tests, 3);
  EXPECT_EQ(row.runs, 250);
  EXPECT_EQ(row.both, 2);
  EXPECT_EQ(row.on_demand, 1);
  EXPECT_DOUBLE_EQ(row.rates.mean, 0.2);
  EXPECT_DOUBLE_EQ(row.rates.median, 0.2);
}

TEST(Study_run_times, Say_longer_when_enough_tests_take_longer_to_fail) {
  ProjectFacts facts;
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    facts.tests.push_back(runs_of(name, 10, 2, 10ms, 30ms));
  const RunTimeRow row = compute_run_times(facts);
  EXPECT_EQ(row.longer, 6);
  EXPECT_NEAR(row.p, 0.03125, 1e-9);
  EXPECT_EQ(row.tendency, RunTimeRow::Tendency::longer);
  EXPECT_DOUBLE_EQ(row.ratio, 3);
  EXPECT_EQ(row.passing.runs, 60);
  EXPECT_EQ(row.failing.mean, Duration(30ms));
}

TEST(Study_run_times, Five_tests_are_too_few_to_say_so) {
  ProjectFacts facts;
  for (const char* name : {"a", "b", "c", "d", "e"})
    facts.tests.push_back(runs_of(name, 10, 2, 10ms, 30ms));
  EXPECT_EQ(compute_run_times(facts).tendency, RunTimeRow::Tendency::unclear);
}

TEST(Study_repair_times, Count_what_is_still_open) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 2), episode("b", 0, 4), episode("c", 0, std::nullopt),
                    episode("d", 0, std::nullopt)};
  const RepairTimeRow row = compute_repair_times(facts, day(100));
  EXPECT_DOUBLE_EQ(row.closed.median, 3);
  EXPECT_EQ(row.survival.open, 2);
  EXPECT_EQ(row.survival.median, 4);
}

TEST(Study_categories, Are_those_of_the_causes_that_tests_failed_from) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 1), episode("b", 0, 1), episode("c", 0, 1)};
  CauseRecord cause;
  cause.signatures = {"a-signature", "b-signature"};
  cause.category = "async wait";
  facts.causes = {cause};
  const CategoryCounts counts = compute_categories({facts});
  EXPECT_EQ(counts.tests, 3);
  EXPECT_EQ(counts.explained, 2);
  ASSERT_EQ(counts.causes.size(), 1u);
  EXPECT_EQ(counts.causes[0].tests, 2);
}

TEST(Study_categories, A_fix_counts_where_and_how_it_was_made) {
  ProjectFacts facts;
  facts.episodes = {episode("a", 0, 1), episode("b", 0, 1)};
  facts.episodes[0].commit = "abc";
  facts.episodes[1].commit = "gone";
  CauseRecord cause;
  cause.signatures = {"a-signature"};
  cause.category = "async wait";
  facts.causes = {cause};
  facts.commits["gone"] = std::nullopt;
  facts.commits["abc"] = CommitChange{
      {"tests/a.cc"}, "diff\n+++ b/tests/a.cc\n@@ @@\n-  wait(1);\n+  wait(2);\n", true};
  const FixCounts fixes = compute_categories({facts}).fixes;
  EXPECT_EQ(fixes.fixes, 2);
  EXPECT_EQ(fixes.commits, 1);
  EXPECT_EQ(fixes.unreadable, 1);
  EXPECT_EQ(fixes.places[static_cast<size_t>(FixPlace::test)], 1);
  EXPECT_EQ(fixes.async_fixes, 1);
  EXPECT_EQ(fixes.async_kinds[static_cast<size_t>(FixKind::longer_wait)], 1);
}

TEST(Study_claims, A_rate_that_fell_is_lower) {
  const auto fixes = compute_claimed_fixes({with_claim({21, 201}, {0, 200})});
  EXPECT_EQ(fixes[0].verdict, FixVerdict::lower);
  EXPECT_EQ(fixes[0].before.failures, 20);
  EXPECT_EQ(fixes[0].before.runs, 200);
}

TEST(Study_claims, A_rate_that_stayed_is_not_lower) {
  const auto fixes = compute_claimed_fixes({with_claim({21, 201}, {18, 200})});
  EXPECT_EQ(fixes[0].verdict, FixVerdict::not_lower);
  EXPECT_GT(fixes[0].p, 0.05);
}

TEST(Study_claims, Few_runs_ask_for_as_many_more_as_would_tell) {
  const auto fixes = compute_claimed_fixes({with_claim({6, 101}, {0, 10})});
  EXPECT_EQ(fixes[0].verdict, FixVerdict::too_few_runs);
  ASSERT_TRUE(fixes[0].more_runs);
  const auto then = compute_claimed_fixes({with_claim({6, 101}, {0, 10 + *fixes[0].more_runs})});
  EXPECT_EQ(then[0].verdict, FixVerdict::lower);
}

TEST(Study_claims, The_failure_that_led_to_the_fix_is_no_evidence_against_it) {
  const auto fixes = compute_claimed_fixes({with_claim({1, 3}, {0, 1000})});
  EXPECT_EQ(fixes[0].verdict, FixVerdict::nothing_to_compare);
}

TEST(Study_claims, Many_claims_take_more_evidence_each) {
  const ProjectFacts weak = with_claim({6, 51}, {0, 50});
  EXPECT_EQ(compute_claimed_fixes({weak})[0].verdict, FixVerdict::lower);
  const auto fixes = compute_claimed_fixes(std::vector<ProjectFacts>(20, weak));
  EXPECT_EQ(fixes[0].verdict, FixVerdict::too_few_runs);
}

TEST(Study_reoccurrence, Is_told_with_the_time_that_it_took) {
  ProjectFacts facts = with_claim({5, 50}, {1, 50});
  facts.claims[0].again = day(17);
  const ReoccurrenceCounts counts = compute_reoccurrences({facts});
  EXPECT_EQ(counts.tests, 1);
  EXPECT_EQ(counts.tests_again, 1);
  EXPECT_DOUBLE_EQ(counts.days.median, 7);
}

TEST(Study, Of_nothing_has_rows_of_zeros) {
  const Study study = compute_study({ProjectFacts{}}, {day(0), day(30)});
  EXPECT_EQ(study.flaky_tests[0].flaky, 0);
  EXPECT_EQ(study.rates[0].both, 0);
  EXPECT_TRUE(study.claimed_fixes.empty());
}

class StudyFactsTest : public testing::Test {
 protected:
  void run_on(int at, const std::string& name, bool passes, const std::string& build) {
    SessionRecord session;
    session.uuid = build;
    session.started = day(at);
    session.surroundings.build = build;
    const auto id = store_.begin_session(session);
    ASSERT_TRUE(id);
    RunRecord run;
    run.test = named(name);
    run.started = day(at) + std::chrono::seconds(++seconds_);
    run.duration = 5ms;
    if (!passes) {
      run.outcome = OutcomeKind::fail;
      run.signature = name + "-signature";
      run.failure = Failure{};
    }
    ASSERT_TRUE(store_.record(*id, run));
  }

  ProjectFacts facts(int until) {
    StudyQuestion question;
    question.window = {day(until - 30), day(until)};
    question.repros = {{named("a"), "async wait"}, {named("sound"), ""}};
    question.change_of = [this](const std::string& commit) -> std::optional<CommitChange> {
      asked_.push_back(commit);
      return std::nullopt;
    };
    auto gathered = gather_facts(store_, question);
    EXPECT_TRUE(gathered);
    return *gathered;
  }

  FakeStore store_;
  std::vector<std::string> asked_;
  int seconds_ = 0;
};

TEST_F(StudyFactsTest, Tell_what_happened_before_and_after_a_claim) {
  for (int at = 1; at <= 9; ++at) run_on(at, "a", at % 3 != 0, "build-" + std::to_string(at / 4));
  run_on(20, "a", true, "after");
  run_on(21, "a", false, "after");
  LifecycleStep lifted;
  lifted.kind = LifecycleStep::Kind::lifted;
  lifted.test = named("a");
  lifted.at = day(15);
  lifted.commit = "abc";
  ASSERT_TRUE(store_.lifecycle().note(lifted));

  const ProjectFacts known = facts(40);
  ASSERT_EQ(known.claims.size(), 1u);
  EXPECT_EQ(known.claims[0].before.with_signature, 3);
  EXPECT_EQ(known.claims[0].before.passes, 6);
  EXPECT_EQ(known.claims[0].after.failures, 1);
  ASSERT_TRUE(known.claims[0].again);
  EXPECT_GT(*known.claims[0].again, day(21));
  EXPECT_EQ(asked_, std::vector<std::string>{"abc"});
  EXPECT_TRUE(known.tests[0].has_repro);
  EXPECT_EQ(known.tests[0].category, "async wait");
  EXPECT_EQ(known.other_repros, 1);
}

TEST_F(StudyFactsTest, Tests_that_were_never_flaky_are_left_out) {
  run_on(1, "a", true, "one");
  run_on(1, "b", false, "one");
  EXPECT_TRUE(facts(40).tests.empty());
}

TEST_F(StudyFactsTest, A_broken_test_that_somebody_quarantined_is_not_flaky) {
  for (const int at : {20, 21}) {
    run_on(at, "a", at == 20, "one");
    run_on(at, "broken", false, "one");
  }
  LifecycleStep quarantined;
  quarantined.test = named("broken");
  quarantined.signature = "broken-signature";
  quarantined.at = day(22);
  ASSERT_TRUE(store_.lifecycle().note(quarantined));
  const ProjectFacts known = facts(40);
  EXPECT_EQ(compute_prevalence(known).flaky_tests, 1);
  EXPECT_EQ(compute_flaky_tests(known).flaky, 1);
  EXPECT_EQ(compute_flaky_tests(known).never_flaky, 1);
  EXPECT_EQ(compute_rates(known).tests, 1);
  EXPECT_EQ(compute_repair_times(known, day(40)).survival.open, 1);
}

TEST_F(StudyFactsTest, A_test_that_only_fails_after_a_claimed_fix_is_told_apart) {
  run_on(1, "a", true, "one");
  run_on(1, "a", false, "one");
  LifecycleStep lifted;
  lifted.kind = LifecycleStep::Kind::lifted;
  lifted.test = named("a");
  lifted.at = day(15);
  ASSERT_TRUE(store_.lifecycle().note(lifted));
  run_on(20, "a", false, "after");
  const ReoccurrenceCounts counts = compute_reoccurrences({facts(40)});
  EXPECT_EQ(counts.tests, 1);
  EXPECT_EQ(counts.tests_again, 0);
  EXPECT_EQ(counts.tests_only_failing, 1);
}

TEST_F(StudyFactsTest, What_nobody_wants_to_see_is_not_read) {
  run_on(1, "a", false, "one");
  run_on(1, "a", true, "one");
  StudyQuestion question;
  question.window = {day(0), day(30)};
  question.with_runs = question.with_claims = question.with_commits = false;
  const auto gathered = gather_facts(store_, question);
  ASSERT_TRUE(gathered);
  EXPECT_EQ(gathered->episodes.size(), 1u);
  EXPECT_TRUE(gathered->tests.empty());
}

}  // namespace
}  // namespace unflake
