#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "model/outcome.h"
#include "search/trial/trial_runner.h"
#include "stats/rates.h"

namespace unflake {

// Fresh runs without interventions: what runs under a plan are compared with. They are made when
// somebody needs them, and shared by all who do.
class BaseRate {
 public:
  BaseRate(TrialRunner& runner, Plan plan)
      : runner_(runner), plain_{std::move(plan), {}, "without delays"} {}

  // One more. False: it could not be made, or had no time to end.
  bool add(const TrialLimit& limit);
  void add(Outcome outcome) { outcomes_.push_back(std::move(outcome)); }

  const Trial& plain() const { return plain_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  int runs() const { return static_cast<int>(outcomes_.size()); }
  Count count(const std::function<bool(const Outcome&)>& is_hit) const;

 private:
  TrialRunner& runner_;
  const Trial plain_;
  std::vector<Outcome> outcomes_;
};

// Whether something comes in at least 3 of 5 fresh runs, or another share, and more often than
// without the plan. Looks at the counts after 5, 10, 20 and 40 runs share the error that is
// allowed: looking more often does not make a lucky streak more likely to pass.
class Confirmation {
 public:
  enum class Answer { holds, does_not, no_time, ended };
  // The n-th candidate of a search shares the error with all others; so do the hits that were
  // looked at before: 1/2 + 1/6 + 1/12 ... is no more than 1.
  Confirmation(int candidates, int hits_before, double least_share = 0.6);

  struct Runs {
    // A fresh run with the plan, and whether it came again. Nothing: there is no time for one.
    std::function<std::optional<bool>()> with_plan;
    // Without the plan, when there are so many, or as many as there is time for.
    std::function<Count(int runs)> without_plan;
    // Stopped, or broken: what was counted says nothing.
    std::function<bool()> has_ended;
  };
  Answer operator()(const Runs& runs);

  const Count& with_plan() const { return with_plan_; }
  const Count& without_plan() const { return without_plan_; }

  static constexpr int group_of_runs = 5;

 private:
  bool is_lost(int runs) const;
  std::optional<Answer> look(int number, int runs) const;
  void make_runs(const Runs& make, int runs);

  const double allowed_;
  const double least_share_;
  Count with_plan_, without_plan_;
};

}  // namespace unflake
