#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/repro.h"
#include "search/reproduce/profile.h"
#include "search/trial/trial_runner.h"
#include "stats/plausibility.h"

namespace unflake {

// What a hunt is after, and whether a run has shown it.
class Goal {
 public:
  Goal(const Wanted& wanted, const Profile& profile) : wanted_(wanted), profile_(profile) {}

  const Wanted& wanted() const { return wanted_; }
  // The test fails by itself in most runs, so that the search is for a plan under which it passes.
  bool is_inverted() const { return inverted_; }
  void invert() { inverted_ = true; }

  // The wanted failure. A test's own macros print and abort in their own way: then the failing line
  // is on the stack, or in what only failing runs print.
  bool shows_wanted(const ExperimentResult& result) const;
  bool is_reached(const ExperimentResult& result) const;
  // The same again as in a run with this signature; under a plan, only once it has fired.
  bool is_same(const Outcome& outcome, const std::string& signature) const;
  bool is_again(const Trial& trial, const std::string& signature,
                const ExperimentResult& result) const;

 private:
  const Wanted wanted_;
  const Profile& profile_;
  bool inverted_ = false;
};

// A trial that was confirmed, as the start of a repro.
struct Found {
  Trial trial;
  Outcome outcome;  // of a hit
  std::string strategy;
  Count with_plan, without_plan;
  std::optional<Count> under_control;  // with the same delays, where free runs leave it to chance
  int candidates = 0;
  uint64_t digest = 0;  // of a run under control
  std::string not_repeatable;
  int search_runs = 0;  // up to the first hit
  Duration elapsed{};   // up to then
  Duration timeout{};
  bool passes_under_plan = false;
  std::optional<Duration> likely_slack;  // what a schedule says of it, before it is measured
  std::optional<Slack> slack;
  std::vector<Dose> doses;
  bool is_refined = false;
  std::optional<Plausibility> plausibility;
  std::optional<MachineLateness> machine_lateness;
  bool was_seen = false;  // without the plan, by whomever

  // Nothing to accuse the test of.
  bool is_margin() const { return plausibility == Plausibility::margin && !was_seen; }
  // Worth keeping while a better plan is looked for, but not the end of the search.
  bool is_reliable() const {
    return under_control.has_value() || with_plan.hits * 10 >= with_plan.runs * 9;
  }
  // A schedule that makes threads late shows that lateness matters. In a free run a delay says how
  // much of it, and where.
  bool wants_delay() const {
    return trial.plan.schedule && trial.plan.schedule->stall > Duration::zero();
  }
};

// What a hunt has found, one of each failure, and what it is worth.
class Findings {
 public:
  Findings(const HuntOptions& options, const Goal& goal, const Profile& profile,
           const BaseRate& base)
      : options_(options), goal_(goal), profile_(profile), times_(profile, options), base_(base) {}

  std::vector<Found>& all() { return all_; }
  const std::vector<Found>& all() const { return all_; }
  int size() const { return static_cast<int>(all_.size()); }
  bool has_reliable() const;
  // Something else than margins.
  bool has_flaw() const;
  // The same, and nothing would be better.
  bool is_enough() const;
  // To be late by seconds proves little, so that a plan under which the same failure takes less is
  // still worth finding.
  bool has_already(const Trial& trial, const Outcome& outcome) const;

  // In place of a weaker one of the same failure.
  void keep(Found found);
  // By how late it must be to fail, and whether anybody has seen it.
  void judge(Found& found) const;

  // Asks the machine once, if the answer matters and there is time for it.
  void learn_machine_lateness(const Found& found, Duration left);
  LatenessLimits limits() const { return limits_of(machine_lateness_.value_or(MachineLateness{})); }

 private:
  Duration lateness_of(const Found& found) const;
  bool is_long(const Found& found) const { return lateness_of(found) > limits().overloaded; }
  bool was_seen(const std::string& signature) const;
  bool depends_on_machine(const Found& found) const;
  std::optional<Plausibility> plausibility_by_lateness(const Found& found) const;

  const HuntOptions& options_;
  const Goal& goal_;
  const Profile& profile_;
  const TrialTimes times_;
  const BaseRate& base_;
  std::vector<Found> all_;
  bool asked_machine_ = false;
  std::optional<MachineLateness> machine_lateness_;
};

}  // namespace unflake
