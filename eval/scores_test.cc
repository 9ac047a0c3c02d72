#include "scores.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "figures.h"

namespace unflake::eval {
namespace {

// Programs that were measured; all is well unless a test changes it.
class Zoo {
 public:
  Zoo(size_t late, size_t correct, size_t broken) {
    for (size_t i = 0; i < late; ++i) add("late", "reproduced");
    for (size_t i = 0; i < correct; ++i) add("correct", "nothing");
    for (size_t i = 0; i < broken; ++i) add("broken", "broken");
  }

  Measurement& operator[](size_t number) { return results_[number]; }
  Truth& truth(size_t number) { return truths_[number]; }

  Score score(const std::string& figure) const {
    std::vector<Measured> all;
    for (size_t i = 0; i < truths_.size(); ++i) all.push_back({&truths_[i], &results_[i]});
    const auto scores = scores_of(all, settings);
    const auto found = std::ranges::find_if(
        scores, [&](const Score& score) { return score.figure.starts_with(figure); });
    return found == scores.end() ? Score{"missing", "missing", "missing", false} : *found;
  }

  EvalSettings settings;

 private:
  void add(const std::string& name, const std::string& expect) {
    Truth truth;
    truth.program = name + std::to_string(truths_.size());
    truth.expect = expect;
    truth.lateness_can_cause_it = expect == "reproduced";
    truth.category = "async wait";
    truth.critical = "a.cc:10";
    truth.barrier = "a.cc:20";
    Measurement result;
    result.search.found = result.search.is_truth = truth.lateness_can_cause_it;
    result.search.found_by = "guided";
    result.search.runs = 1;
    result.search.elapsed_us = 1'000'000;
    result.search.says_broken = expect == "broken";
    result.replays = result.busy_replays = {100, 100, ""};
    result.explained = {"async wait", "a.cc:10", "", "a.cc:20", ""};
    truths_.push_back(std::move(truth));
    results_.push_back(std::move(result));
  }

  std::vector<Truth> truths_;
  std::vector<Measurement> results_;
};

TEST(Figures, Are_those_of_the_sorted_values) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_EQ(quantile({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.9), 9);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_EQ(median({}), 0);
}

TEST(Scores, Of_a_zoo_in_which_all_is_well_meet_every_target) {
  Zoo zoo(20, 2, 1);
  zoo.settings.with_strategies = true;
  for (const char* figure : {"failures reproduced", "of all these", "the same beside",
                             "search runs", "wall time", "reports on", "broken programs"})
    EXPECT_TRUE(zoo.score(figure).met) << figure << ": " << zoo.score(figure).measured;
}

TEST(Scores, Count_another_failure_than_the_truth_as_not_reproduced) {
  Zoo zoo(10, 0, 0);
  zoo[3].search.is_truth = false;
  EXPECT_EQ(zoo.score("failures reproduced").measured, "9 of 10 (90.0 %); not: late3");
  EXPECT_FALSE(zoo.score("failures reproduced").met);
}

TEST(Scores, Want_every_replay_to_come_back) {
  Zoo zoo(2, 0, 0);
  zoo[1].replays.as_recorded = 99;
  EXPECT_EQ(zoo.score("of all these").measured, "1 of 2 (50.0 %); not: late1");
  EXPECT_TRUE(zoo.score("the same beside").met);
}

TEST(Scores, Judge_each_family_by_its_own_targets) {
  Zoo zoo(2, 0, 0);
  zoo.truth(1).family = "interleavings";
  zoo[1].search.runs = 16;
  EXPECT_EQ(zoo.score("failures reproduced").measured, "1 of 1 (100.0 %)");
  EXPECT_TRUE(zoo.score("interleavings").met);
  EXPECT_FALSE(zoo.score("the same: runs").met);
  zoo.truth(1).family = "layers";
  EXPECT_EQ(zoo.score("programs with layers").measured, "1 of 1 (100.0 %)");
  zoo.truth(1).family = "unsteady";
  zoo[1].search.found = false;
  EXPECT_EQ(zoo.score("tests that fail by themselves").measured, "0 of 1 (0.0 %); not: late1");
}

TEST(Scores, Count_explanations_of_the_families_that_are_explained) {
  Zoo zoo(3, 0, 0);
  zoo.truth(1).family = "layers";
  zoo[1].explained.cause = "ordering";
  zoo.truth(2).family = "interleavings";
  EXPECT_EQ(zoo.score("explanation: category").measured, "1 of 2 (50.0 %)");
}

TEST(Scores, Take_the_guided_runs_from_where_it_was_alone) {
  Zoo zoo(1, 0, 0);
  zoo.settings.with_strategies = true;
  zoo[0].search.found_by = "bisection";
  EXPECT_FALSE(zoo.score("search runs").met);
  Search alone = zoo[0].search;
  alone.strategies = alone.found_by = "guided";
  alone.runs = 2;
  zoo[0].compared.push_back(alone);
  EXPECT_EQ(zoo.score("search runs").measured, "2.0 over 1 programs");
  EXPECT_TRUE(zoo.score("search runs").met);
}

TEST(Scores, Miss_the_target_for_a_single_false_report) {
  Zoo zoo(1, 2, 0);
  zoo[1].search.found = true;
  EXPECT_EQ(zoo.score("reports on").measured, "1 of 2; namely: correct1");
  EXPECT_FALSE(zoo.score("reports on").met);
}

TEST(Scores, Miss_the_target_when_a_broken_program_is_not_called_broken_or_a_correct_one_is) {
  Zoo zoo(0, 1, 1);
  zoo[0].search.says_broken = true;
  zoo[1].search.says_broken = false;
  EXPECT_EQ(zoo.score("broken").measured,
            "1 broken ones, 2 called wrongly; namely: correct0, broken1");
  EXPECT_FALSE(zoo.score("broken").met);
}

TEST(Scores, Miss_the_target_for_a_single_contradiction) {
  Zoo zoo(1, 0, 0);
  EXPECT_TRUE(zoo.score("explanation: words").met);
  zoo[0].explained.contradictions = {"the order is kept and the test fails"};
  EXPECT_FALSE(zoo.score("explanation: words").met);
}

TEST(Scores, Of_nothing_measured_meet_no_target_of_reproduction) {
  const Zoo zoo(0, 0, 0);
  EXPECT_FALSE(zoo.score("failures reproduced").met);
  EXPECT_FALSE(zoo.score("search runs").met);
}

TEST(Explanation, Is_right_within_one_line_and_tells_when_only_the_caller_is) {
  Truth truth;
  truth.category = "ordering";
  truth.critical = "a.cc:10";
  truth.barrier = "a.cc:20";
  const ExplanationCheck found =
      check(truth, {"ordering", "a.cc:11", "a.cc:30", "b.cc:20", "a.cc:19"});
  EXPECT_TRUE(found.category);
  EXPECT_TRUE(found.critical.place);
  EXPECT_FALSE(found.barrier.place);
  EXPECT_TRUE(found.barrier.caller);
}

TEST(Explanation, Is_right_about_one_of_two_ways_to_fail_and_not_about_half_of_each) {
  Truth truth;
  truth.category = "ordering";
  truth.critical = "a.cc:10";
  truth.barrier = "a.cc:20";
  truth.other_way = {"async wait", "a.cc:30", "a.cc:40"};
  const ExplanationCheck other = check(truth, {"async wait", "a.cc:30", "", "a.cc:40", ""});
  EXPECT_TRUE(other.category && other.critical.place && other.barrier.place);
  const ExplanationCheck mixed = check(truth, {"async wait", "a.cc:10", "", "a.cc:20", ""});
  EXPECT_FALSE(mixed.category);
  EXPECT_TRUE(mixed.critical.place && mixed.barrier.place);
}

TEST(Explanation, Is_not_asked_for_lines_that_the_truth_does_not_name) {
  Truth truth;
  truth.category = "exact timing";
  truth.critical = truth.barrier = "exact timing";
  const ExplanationCheck found = check(truth, {"ordering", "a.cc:1", "", "a.cc:1", ""});
  EXPECT_FALSE(found.category);
  EXPECT_FALSE(found.critical.asked);
  EXPECT_FALSE(found.critical.any());
}

}  // namespace
}  // namespace unflake::eval
