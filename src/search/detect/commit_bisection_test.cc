#include "search/detect/commit_bisection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace unflake {
namespace {

using BisectionAnswer = CommitBisection::Answer;

// A history in which the test fails from a commit on; a look shows that with some chance.
struct SimulatedHistory {
  size_t commits = 64;
  size_t first = 40;
  double seen_in_look = 1, seen_in_thorough_look = 1;
  std::set<size_t> broken = {};
  uint32_t seed = 1;
  int most_looks = 1000;

  CommitBisection bisect() {
    std::mt19937 random(seed);
    int looks = 0;
    BisectedBuilds builds;
    builds.commits = commits;
    builds.look = [&](size_t commit, bool thoroughly) {
      ++looks;
      CommitLook look;
      look.runs = thoroughly ? 10 : 3;
      if (broken.contains(commit)) return look;
      const double chance = thoroughly ? seen_in_thorough_look : seen_in_look;
      const bool fails = commit == commits - 1 ||
                         (commit >= first && std::uniform_real_distribution<>()(random) < chance);
      look.answer = fails ? CommitLook::Answer::fails : CommitLook::Answer::holds;
      return look;
    };
    builds.has_ended = [&] { return looks >= most_looks; };
    return find_first_failing(builds);
  }
};

TEST(CommitBisection, Finds_every_commit_with_few_looks) {
  for (size_t first = 1; first < 64; ++first) {
    const CommitBisection found = SimulatedHistory{64, first}.bisect();
    EXPECT_EQ(found.answer, BisectionAnswer::found);
    EXPECT_EQ(found.first_failing, first);
    EXPECT_EQ(found.last_holding, first - 1);
    EXPECT_LE(found.steps.size(), 2u + 6 + 1);
  }
}

TEST(CommitBisection, The_answer_rests_on_a_thorough_look) {
  const CommitBisection found = SimulatedHistory{64, 17}.bisect();
  bool is_thorough = false;
  for (const auto& step : found.steps) is_thorough |= step.commit == 16 && step.is_thorough;
  EXPECT_TRUE(is_thorough);
}

TEST(CommitBisection, A_look_that_misses_the_failure_is_made_good) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SimulatedHistory history{64, 1 + seed % 63, 0.6};
    history.seed = seed;
    const CommitBisection found = history.bisect();
    EXPECT_EQ(found.answer, BisectionAnswer::found) << seed;
    EXPECT_EQ(found.first_failing, history.first) << seed;
  }
}

TEST(CommitBisection, Goes_around_commits_that_do_not_build) {
  SimulatedHistory history{64, 40};
  history.broken = {31, 32, 33, 35, 47};
  const CommitBisection found = history.bisect();
  EXPECT_EQ(found.answer, BisectionAnswer::found);
  EXPECT_EQ(found.first_failing, 40u);
}

TEST(CommitBisection, Names_all_that_may_be_it_when_its_neighbours_do_not_build) {
  SimulatedHistory history{64, 40};
  history.broken = {38, 39};
  const CommitBisection found = history.bisect();
  EXPECT_EQ(found.answer, BisectionAnswer::several);
  EXPECT_EQ(found.last_holding, 37u);
  EXPECT_EQ(found.first_failing, 40u);
}

TEST(CommitBisection, Says_so_when_it_fails_at_the_good_end) {
  EXPECT_EQ((SimulatedHistory{64, 0}.bisect().answer), BisectionAnswer::fails_before);
}

TEST(CommitBisection, Says_so_when_only_a_thorough_look_shows_that) {
  const CommitBisection found = SimulatedHistory{8, 0, 0}.bisect();
  EXPECT_EQ(found.answer, BisectionAnswer::fails_before);
}

TEST(CommitBisection, Says_so_when_it_never_fails) {
  SimulatedHistory history{8, 8};
  history.broken = {7};
  EXPECT_EQ(history.bisect().answer, BisectionAnswer::never_fails);
}

TEST(CommitBisection, A_good_end_that_does_not_build_is_taken_for_granted) {
  SimulatedHistory history{64, 40};
  history.broken = {0};
  EXPECT_EQ(history.bisect().first_failing, 40u);
}

TEST(CommitBisection, Keeps_what_it_knows_when_it_is_stopped) {
  SimulatedHistory history{64, 40};
  history.most_looks = 4;
  const CommitBisection found = history.bisect();
  EXPECT_EQ(found.answer, BisectionAnswer::unfinished);
  EXPECT_EQ(found.steps.size(), 4u);
  EXPECT_GE(found.first_failing, 40u);
  EXPECT_LT(found.last_holding, 40u);
}

TEST(CommitBisection, Of_two_commits_the_good_one_is_looked_at_again) {
  const CommitBisection found = SimulatedHistory{2, 1}.bisect();
  EXPECT_EQ(found.answer, BisectionAnswer::found);
  EXPECT_EQ(found.steps.size(), 3u);
}

TEST(RunsThatTell, Are_few_for_a_failure_that_comes_every_time) {
  EXPECT_LE(runs_that_tell({5, 5}, 0.02), 3);
  EXPECT_NEAR(runs_that_tell({10, 100}, 0.02), 35, 3);
  EXPECT_GE(runs_that_tell({1, 100}, 0.02), 150);
}

}  // namespace
}  // namespace unflake
