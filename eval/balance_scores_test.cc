#include "balance_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;

BalanceAnswer::Value value_at(const std::string& line, const std::string& change, int64_t us) {
  return {line + ":nanosleep", "wait", change, "", 200'000, us};
}

// Programs that were measured, a threshold and a wait that is not needed each; all is well unless a
// test changes it.
class Times {
 public:
  explicit Times(size_t programs) {
    for (size_t i = 0; i < programs; ++i) add("p" + std::to_string(i));
  }

  TimedMeasurement& operator[](size_t number) { return measured_[number]; }
  CheckedProposal& proposal(size_t number) { return measured_[number].proposals.front(); }
  TimedTruth& truth(size_t number) { return truths_[number]; }
  BalanceResults results;

  Score score(const std::string& figure) const {
    std::vector<MeasuredTimes> all;
    for (size_t i = 0; i < truths_.size(); ++i) all.push_back({&truths_[i], &measured_[i]});
    const auto scores = balance_scores(all, results);
    const auto found = std::ranges::find_if(
        scores, [&](const Score& score) { return score.figure.starts_with(figure); });
    return found == scores.end() ? Score{"missing", "missing", "missing", false} : *found;
  }

 private:
  void add(const std::string& name) {
    TimedTruth truth{name, "gtest", "A.B", 0, {}, {}};
    truth.values.push_back({name + ".cc:1", "sleep_for", "wait", "fixed", "shorten", 200ms, 50ms});
    truth.values.push_back({name + ".cc:2", "sleep_for", "wait", "", "unneeded", 200ms, {}});
    truths_.push_back(truth);
    TimedMeasurement measured;
    measured.program = name;
    CheckedProposal proposal;
    proposal.answer.runs = 100;
    proposal.answer.values = {value_at(name + ".cc:1", "shorten", 52'000),
                              value_at(name + ".cc:2", "shorten", 0)};
    proposal.as_proposed = {1000, 0, 60};
    proposal.lowered = {{{name + ".cc:1"}, {2, 2, 0}}};
    measured.proposals = {proposal};
    measured.fatb = proposal;
    measured.fatb->answer.runs = 900;
    measured_.push_back(std::move(measured));
  }

  std::vector<TimedTruth> truths_;
  std::vector<TimedMeasurement> measured_;
};

SuiteMeasurement suite_with(double claimed_ms, const Rerun& before, const Rerun& after) {
  SuiteMeasurement suite;
  BalanceAnswer answer;
  answer.test = "suite:A.B";
  answer.saved_ms = claimed_ms;
  suite.answer.tests.push_back(answer);
  suite.tests.push_back({"suite:A.B", before, after});
  return suite;
}

TEST(BalanceScores, Of_programs_with_which_all_is_well_meet_every_target) {
  Times times(20);
  times.results.suites.push_back(suite_with(100, {100, 0, 200}, {100, 0, 100}));
  for (const char* figure : {"proposals within", "proposals below", "runs of a search",
                             "values that are not", "suite mode: seconds", "suite mode: tests"})
    EXPECT_TRUE(times.score(figure).met) << figure << ": " << times.score(figure).measured;
}

TEST(BalanceScores, Count_a_proposal_as_below_when_two_of_a_thousand_fail_but_not_when_one_does) {
  Times times(2);
  times.proposal(0).as_proposed.failures = 1;
  EXPECT_TRUE(times.score("proposals below").met);
  times.proposal(1).as_proposed.failures = 2;
  EXPECT_FALSE(times.score("proposals below").met);
  EXPECT_NE(times.score("proposals below").measured.find("namely: p1.cc:1"), std::string::npos);
}

TEST(BalanceScores, Count_a_proposal_as_above_when_a_tenth_less_holds_as_well) {
  Times times(10);
  times.proposal(3).lowered.front().rerun = {1000, 1, 60};
  EXPECT_FALSE(times.score("proposals within").met);
  EXPECT_NE(times.score("proposals within").measured.find("9 of 10"), std::string::npos);
  EXPECT_NE(times.score("proposals within").measured.find("above: p3.cc:1"), std::string::npos);
}

TEST(BalanceScores, Do_not_count_a_value_that_was_not_found_as_good) {
  Times times(1);
  times.proposal(0).lowered.clear();
  EXPECT_FALSE(times.score("proposals within").met);
  EXPECT_NE(times.score("proposals within").measured.find("nothing proposed: p0.cc:1"),
            std::string::npos);
}

TEST(BalanceScores, Allow_one_bad_proposal_of_twenty_and_not_two) {
  Times times(20);
  times.proposal(0).lowered.front().rerun = {1000, 0, 60};
  EXPECT_TRUE(times.score("proposals within").met);
  times.proposal(1).lowered.front().rerun = {1000, 0, 60};
  EXPECT_FALSE(times.score("proposals within").met);
}

TEST(BalanceScores, Compare_a_test_that_fails_anyway_with_itself) {
  Times times(1);
  times[0].base = {1000, 100, 60};
  times.proposal(0).as_proposed = {1000, 104, 60};
  times.proposal(0).lowered.front().rerun = {50, 50, 0};
  EXPECT_TRUE(times.score("proposals within").met);
  times.proposal(0).as_proposed = {1000, 180, 60};
  EXPECT_FALSE(times.score("proposals below").met);
}

TEST(BalanceScores, Miss_the_target_when_more_than_a_third_of_the_runs_are_needed) {
  Times times(2);
  EXPECT_TRUE(times.score("runs of a search").met);
  times.proposal(0).answer.runs = 501;
  EXPECT_FALSE(times.score("runs of a search").met);
  times.proposal(0).answer.runs = 500;
  EXPECT_TRUE(times.score("runs of a search").met) << "all programs together decide";
}

TEST(BalanceScores, Leave_searches_without_an_answer_out_of_the_comparison_of_runs) {
  Times times(2);
  times.proposal(0).answer = {};
  times.proposal(0).answer.error = "out of budget";
  EXPECT_NE(times.score("runs of a search").measured.find("over 1 programs"), std::string::npos);
}

TEST(BalanceScores, Leave_values_that_FaTB_could_not_mend_out_of_the_comparison_of_runs) {
  Times times(2);
  times[1].fatb->as_proposed = {13, 2, 60};
  const std::string measured = times.score("runs of a search").measured;
  EXPECT_THAT(measured, testing::HasSubstr("over 1 programs"));
  EXPECT_THAT(measured, testing::HasSubstr("FaTB's value does not hold: "));
}

TEST(BalanceScores, Want_values_near_zero_that_are_not_needed) {
  Times times(1);
  times.proposal(0).answer.values[1].proposed_us = 2001;
  EXPECT_FALSE(times.score("values that are not").met);
}

TEST(BalanceScores, Compare_the_seconds_that_a_suite_saves_with_what_was_claimed) {
  Times times(1);
  times.results.suites = {suite_with(100, {100, 0, 200}, {100, 0, 111})};
  EXPECT_FALSE(times.score("suite mode: seconds").met);
  times.results.suites = {suite_with(100, {100, 0, 200}, {100, 0, 109})};
  EXPECT_TRUE(times.score("suite mode: seconds").met);
}

TEST(BalanceScores, Miss_the_target_when_a_test_of_a_suite_fails_more_often) {
  Times times(1);
  times.results.suites = {suite_with(100, {100, 10, 200}, {100, 12, 100})};
  EXPECT_TRUE(times.score("suite mode: tests").met);
  times.results.suites = {suite_with(100, {100, 0, 200}, {100, 8, 100})};
  EXPECT_FALSE(times.score("suite mode: tests").met);
}

TEST(BalanceScores, Of_nothing_measured_meet_no_target) {
  const Times times(0);
  for (const char* figure : {"proposals within", "proposals below", "values that are not"})
    EXPECT_FALSE(times.score(figure).met) << figure;
}

TEST(Cases, Lower_values_together_where_only_their_sum_matters) {
  Times times(1);
  times.truth(0).together = 90ms;
  EXPECT_EQ(lines_to_lower(times.truth(0)),
            (std::vector<std::vector<std::string>>{{"p0.cc:1", "p0.cc:2"}}));
}

TEST(Expectation, Is_met_by_leaving_alone_what_must_be_kept_or_not_changed) {
  BalanceAnswer answer;
  answer.values = {value_at("a.cc:1", "keep", 200'000), value_at("a.cc:2", "not_searched", 0),
                   value_at("a.cc:3", "shorten", 50'000)};
  for (const char* expect : {"keep", "not changed"}) {
    EXPECT_TRUE(is_as_expected({"a.cc:1", "", "", "", expect, 1s, {}}, answer));
    EXPECT_TRUE(is_as_expected({"a.cc:2", "", "", "", expect, 1s, {}}, answer));
    EXPECT_FALSE(is_as_expected({"a.cc:3", "", "", "", expect, 1s, {}}, answer));
  }
  EXPECT_FALSE(is_as_expected({"a.cc:4", "", "", "", "keep", 1s, {}}, answer)) << "not found";
}

TEST(Rerun, Can_end_when_too_many_have_failed_and_not_before) {
  EXPECT_FALSE(has_failed({10, 1, 0}, {}, 1000));
  EXPECT_TRUE(has_failed({10, 2, 0}, {}, 1000));
  EXPECT_TRUE(has_failed({10, 1, 0}, {}, 200)) << "of 200 runs none may fail";
  EXPECT_FALSE(has_failed({50, 6, 0}, {1000, 100, 0}, 1000));
  EXPECT_TRUE(has_failed({50, 40, 0}, {1000, 100, 0}, 1000));
}

}  // namespace
}  // namespace unflake::eval
