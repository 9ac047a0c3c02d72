#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/explore_report.h"
#include "search/reproduce/findings.h"
#include "search/reproduce/foresight.h"
#include "search/reproduce/profile.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// Everything that was tried, for whoever asks why nothing was found.
struct Coverage {
  int search_runs = 0;  // experiments that strategies asked for
  int fired_runs = 0;   // experiments in which a delay happened
  int never_fired = 0;  // experiments in which none of the plan's delays did
  Duration delay_added{};
  std::set<std::string> sites_tried;          // as text, with the thread
  std::set<std::string> plans_tried;          // as text
  std::set<std::string> free_plans;           // of these, what free cores were given
  std::map<std::string, int> other_failures;  // headline -> runs, that were not what was wanted
  std::set<std::string> refused;              // why plans could not be carried out
  int unconfirmed = 0;                        // hits that did not come back often enough
  Count late;                                 // runs made late or scarce, and those that failed
  int unaffordable = 0;                       // plans that there was no time to confirm a hit of
  Duration longest_unaffordable{};            // what the longest of them would have taken
  std::vector<Found> unfinished;              // hits that the time to confirm them ran out of
  std::vector<std::string> left_out;          // strategies that there was no time for a run of
  std::optional<ExploreReport> schedules;     // that the test was run under
  std::vector<std::string> not_needed;  // strategies, after what lateness under control showed
  size_t late_trials = 0;  // of one thread, under control, that `lateness` had time for
  bool was_late_under_control = false;  // everywhere, alone and in pairs

  void count(const Trial& trial, const Observation& seen, bool shows_wanted);
};

// Whether runs of the test may be made side by side: where it mostly waits, and runs without a plan
// have shown that company does no harm.
class Company {
 public:
  Company(TrialRunner& runner, BaseRate& base, const Profile& profile, const TrialTimes& times)
      : runner_(runner), base_(base), profile_(profile), times_(times) {}

  // Once, while there is time for it.
  void try_with(const Trial& trial);
  // Fresh runs of a trial: one, or as many as can be made side by side. None when there is no time.
  std::vector<ExperimentResult> run(const Trial& trial, TrialEnded::Purpose purpose,
                                    Duration timeout);

 private:
  TrialRunner& runner_;
  BaseRate& base_;
  const Profile& profile_;
  const TrialTimes& times_;
  int at_once_ = 1;
  bool was_tried_ = false;
};

// The hunt for a failure of one test: what strategies work with. It decides what is worth a run,
// and what is to be believed.
class Hunt {
 public:
  Hunt(Executor& executor, std::shared_ptr<const Test> test, const HuntOptions& options,
       EventStream& events);

  // Profiles the test. False: there is nothing to search: it always fails, it is skipped, or no
  // run could be made.
  bool prepare();

  const HuntOptions& options() const { return options_; }
  const Profile& profile() const { return profile_; }
  const TrialTimes& times() const { return times_; }
  const Goal& goal() const { return goal_; }
  const BaseRate& base_rate() const { return base_; }
  Plan base_plan() const { return unflake::base_plan(options_); }
  TrialRunner& runner() { return runner_; }
  const TrialRunner& runner() const { return runner_; }
  Findings& findings() { return findings_; }
  const Findings& findings() const { return findings_; }
  std::vector<Found>& found() { return findings_.all(); }
  Foresight& foresight() { return foresight_; }
  Company& company() { return company_; }
  Coverage& coverage() { return coverage_; }
  const Coverage& coverage() const { return coverage_; }

  // One run. Nothing when the hunt is over; a run that could not be made counts as no hit.
  std::optional<Observation> observe(const Trial& trial);
  // Whether the hit comes back, by Confirmation. What is confirmed is kept in found().
  bool confirm(const Trial& trial, const Observation& hit);
  // The same under control. Nothing when the test does not bear it.
  std::optional<Observation> foresee(const Trial& trial);
  // A run for a strategy's own information (other functions traced, more probes): not counted as a
  // candidate.
  std::optional<ExperimentResult> look(const Plan& plan);

  // Found what was wanted, out of budget, stopped, or broken.
  bool over() const;
  // No time is left to search; what is reserved is for confirming and measuring what was found.
  bool out_of_budget() const;
  // For strategies that plan ahead: not more than this.
  Duration time_to_search() const;
  // A run has failed as wanted: it is worth the time to see whether that comes back.
  void take_sign();
  bool was_impatient() const { return was_impatient_; }

 private:
  bool measure_base();
  bool is_affordable(const Trial& trial);
  std::optional<Observation> seen_to_its_end(const Trial& trial, const Observation& hit);
  Confirmation::Runs confirming(const Trial& trial, const Found& found);

  const HuntOptions options_;
  Profile profile_;
  const TrialTimes times_;
  Goal goal_;
  TrialRunner runner_;
  BaseRate base_;
  Findings findings_;
  Foresight foresight_;
  Coverage coverage_;
  Company company_;
  Duration patient_until_;
  mutable bool was_impatient_ = false;
};

// Runs that failed as wanted, of those that were made late or scarce and of those that were not.
struct LatenessEffect {
  Count late, plain;
  double p = 1;  // that both rates are the same, by Fisher's exact test

  bool shows() const { return p <= 0.05; }
};

LatenessEffect lateness_effect(const Hunt& hunt);

}  // namespace unflake
