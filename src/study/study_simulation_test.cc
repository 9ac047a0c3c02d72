#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "study/study.h"

namespace unflake {
namespace {

using FixVerdict = ClaimedFix::Verdict;

struct SimulatedRun {
  TimePoint at;
  bool failed = false;
};

// A test that runs many times a day and fails at a known rate, and somebody who claims a fix as
// soon as it has failed `patience` times. What the claim really does to the rate is known.
struct SimulatedFix {
  double rate_before = 0.05, rate_after = 0.05;
  int patience = 3;
  int runs_before = 600, runs_after = 400;
};

class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {}

  ProjectFacts operator()(const std::vector<SimulatedFix>& fixes) {
    ProjectFacts facts;
    for (const SimulatedFix& fix : fixes) add(facts, fix);
    return facts;
  }

 private:
  void add(ProjectFacts& facts, const SimulatedFix& fix) {
    std::vector<SimulatedRun> runs;
    int failures = 0, after = 0;
    std::optional<TimePoint> claimed;
    for (int i = 0; after < fix.runs_after; ++i) {
      const double rate = claimed ? fix.rate_after : fix.rate_before;
      const SimulatedRun run{TimePoint(std::chrono::hours(i)),
                             std::bernoulli_distribution(rate)(random_)};
      runs.push_back(run);
      after += claimed.has_value();
      failures += run.failed;
      const bool is_time = failures >= fix.patience || i + 1 == fix.runs_before;
      if (!claimed && is_time) claimed = run.at + std::chrono::minutes(1);
    }
    FlakyEpisode episode;
    episode.test = {"suite", std::to_string(facts.episodes.size())};
    episode.opened = runs.front().at;
    episode.closed = claimed;
    facts.episodes.push_back(episode);
    const size_t index = facts.episodes.size() - 1;
    const ClaimWindows windows =
        windows_of(facts.episodes, index, {TimePoint::min(), runs.back().at});
    facts.claims.push_back({index, count(runs, windows.before), count(runs, windows.after), {}});
  }

  static RunCounts count(const std::vector<SimulatedRun>& runs, const Window& window) {
    RunCounts counts;
    for (const SimulatedRun& run : runs)
      if (run.at >= window.from && run.at < window.until)
        ++(run.failed ? counts.failures : counts.passes);
    return counts;
  }

  std::mt19937 random_;
};

// All kinds of rates and of people: some act at the first failure, some wait for ten.
std::vector<SimulatedFix> fixes_that_change_nothing(size_t number) {
  constexpr double rates[] = {0.005, 0.02, 0.08, 0.3};
  constexpr int patiences[] = {1, 2, 4, 10};
  std::vector<SimulatedFix> fixes(number);
  for (size_t i = 0; i < number; ++i) {
    fixes[i].rate_before = fixes[i].rate_after = rates[i % 4];
    fixes[i].patience = patiences[i / 4 % 4];
  }
  return fixes;
}

int64_t count_verdicts(const std::vector<ClaimedFix>& fixes, FixVerdict verdict) {
  return std::ranges::count(fixes, verdict, &ClaimedFix::verdict);
}

TEST(Simulated_fixes, One_that_changed_nothing_looks_better_in_at_most_5_percent) {
  const auto fixes = compute_claimed_fixes({Simulation(1)(fixes_that_change_nothing(400))});
  const auto looks_lower = [](const ClaimedFix& fix) { return fix.p <= claim_error; };
  EXPECT_LE(std::ranges::count_if(fixes, looks_lower), 20);
}

TEST(Simulated_fixes, Of_a_study_of_20_hardly_any_says_lower_of_one_that_changed_nothing) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto fixes = compute_claimed_fixes({Simulation(seed)(fixes_that_change_nothing(20))});
    wrong += count_verdicts(fixes, FixVerdict::lower) > 0;
  }
  EXPECT_LE(wrong, 3);
}

TEST(Simulated_fixes, One_that_works_is_seen) {
  const std::vector<SimulatedFix> work(20, {.rate_before = 0.1, .rate_after = 0, .patience = 20});
  const auto fixes = compute_claimed_fixes({Simulation(2)(work)});
  EXPECT_GE(count_verdicts(fixes, FixVerdict::lower), 18);
}

TEST(Simulated_fixes, One_that_changed_nothing_is_called_so_when_there_are_runs_enough) {
  const std::vector<SimulatedFix> nothing(20,
                                          {.rate_before = 0.1, .rate_after = 0.1, .patience = 20});
  const auto fixes = compute_claimed_fixes({Simulation(3)(nothing)});
  EXPECT_GE(count_verdicts(fixes, FixVerdict::not_lower), 18);
}

}  // namespace
}  // namespace unflake
