#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "model/repro.h"
#include "run/executor.h"
#include "search/reproduce/profile.h"
#include "stats/plausibility.h"

namespace unflake {

// The failure that is looked for; with nothing set, any.
struct Wanted {
  std::string signature;
  // Counts as the same by file and line or file and expression, too, or when all that is known of
  // it agrees.
  std::optional<Failure> failure;

  bool anything() const { return signature.empty() && !failure; }
  bool matches(const Outcome& outcome) const;
};

struct DelayLimits {
  Duration least{std::chrono::milliseconds(100)};
  Duration most{std::chrono::seconds(10)};
  Duration cheap{std::chrono::seconds(2)};  // longer ones are put last
};

// In which order candidates are tried. Chosen by measurement: see docs/EVALUATION.md.
enum class Order {
  turns,       // all visits first, threads in turn, bursts first, each site once before repeats
  nearest,     // FlakeEcho: the nearest before the failure point first
  appearance,  // as the run came to them
  random,
};

std::optional<Order> order_from(std::string_view name);
std::string_view to_string(Order order);

struct HuntOptions {
  Wanted wanted;
  Duration budget{std::chrono::minutes(5)};       // for everything, the slack included
  Duration timeout{std::chrono::minutes(10)};     // of a profiling run
  Duration time_offset{std::chrono::seconds(2)};  // what a run may take beyond what is expected
  std::optional<Duration> initial_delay;          // FlakeRake's initial sleep, 5 s in the paper
  int profile_runs = 5;
  DelayLimits delays;
  Order order = Order::turns;
  size_t most_candidates = 0;  // of guided, as FlakeEcho's k; 0: all
  std::vector<std::string> groups_off;
  std::vector<std::string> extra_functions;
  bool system_calls = false;
  uint64_t seed = 1;
  std::set<std::string> known_signatures;  // of failures that the test has shown before
  // How late the machine is, asked once, when there is something to judge by it. Without it every
  // machine counts as quiet.
  std::function<std::optional<MachineLateness>()> measure_lateness;
};

// One experiment that a strategy wants to make, and why.
struct Trial {
  Plan plan;
  Conditions conditions;
  std::string why;
};

struct Observation {
  ExperimentResult result;
  bool hit = false;    // it showed what the hunt is after
  bool fired = false;  // an intervention has happened; true when the trial has none
  Duration limit{};    // that the run had
};

// A trial that was confirmed, as the start of a repro.
struct Found {
  Trial trial;
  Outcome outcome;  // of a hit
  std::string strategy;
  Count with_plan, without_plan;
  int candidates = 0;
  int search_runs = 0;  // up to the first hit
  Duration elapsed{};   // up to then
  Duration timeout{};
  bool passes_under_plan = false;
  std::optional<Slack> slack;
  std::vector<Dose> doses;
  bool is_refined = false;
  std::optional<Plausibility> plausibility;
  std::optional<MachineLateness> machine_lateness;
  bool was_seen = false;  // without the plan, by whomever

  // Nothing to accuse the test of.
  bool is_margin() const { return plausibility == Plausibility::margin && !was_seen; }
  // Worth keeping while a better plan is looked for, but not the end of the search.
  bool is_reliable() const { return with_plan.hits * 10 >= with_plan.runs * 9; }
};

// Everything that was tried, for whoever asks why nothing was found.
struct Coverage {
  int search_runs = 0;  // experiments that strategies asked for
  int confirming_runs = 0;
  int baseline_runs = 0;
  int fired_runs = 0;   // experiments in which a delay happened
  int never_fired = 0;  // experiments in which none of the plan's delays did
  Duration delay_added{};
  std::set<std::string> sites_tried;          // as text, with the thread
  std::set<std::string> plans_tried;          // as text
  std::map<std::string, int> other_failures;  // headline -> runs, that were not what was wanted
  std::set<std::string> refused;              // why plans could not be carried out
  int unconfirmed = 0;                        // hits that did not come back often enough
  Count late;                                 // runs made late or scarce, and those that failed
  int unaffordable = 0;                       // plans that there was no time to confirm a hit of
  Duration longest_unaffordable{};            // what the longest of them would have taken
  std::vector<Found> unfinished;              // hits that the time to confirm them ran out of
  std::vector<std::string> left_out;          // strategies that there was no time for a run of
};

// Runs that failed as wanted, of those that were made late or scarce and of those that were not.
struct LatenessEffect {
  Count late, plain;
  double p = 1;  // that both rates are the same, by Fisher's exact test

  bool shows() const { return p <= 0.05; }
};

// The hunt for a failure of one test: what strategies work with. It counts, keeps to the budget,
// sets time limits, confirms what they find, and tells the event stream.
class Hunt {
 public:
  Hunt(Executor& executor, std::shared_ptr<const Test> test, const HuntOptions& options,
       EventStream& events);

  // Profiles the test. False: there is nothing to search: it always fails, it is skipped, or no
  // run could be made.
  bool prepare();

  const Test& test() const { return *test_; }
  const HuntOptions& options() const { return options_; }
  const Profile& profile() const { return profile_; }
  // The test fails by itself in most runs, so that the search is for a plan under which it passes.
  bool is_inverted() const { return inverted_; }

  // The first delay of strategies that delay many places at once; unless the user chose it, long
  // enough to outlast the whole test several times.
  Duration initial_delay() const;

  // Names the strategy whose trials follow, and what it does, for people.
  void begin(std::string strategy, std::string about = "");
  // What is tried next, and why. Told when its first run begins: what there is no time for is not.
  void announce(std::string text);
  // What has come of it.
  void say(const std::string& text);

  // One run. Nothing when the hunt is over; a run that could not be made counts as no hit.
  std::optional<Observation> observe(const Trial& trial);
  // Whether the hit comes back: at least 3 of 5 fresh runs with the same signature, and
  // significantly more often than without the plan, corrected for the number of plans tried. What
  // is confirmed is kept in found().
  bool confirm(const Trial& trial, const Observation& hit);
  // A run for a strategy's own information (other functions traced, more probes): not counted as a
  // candidate.
  std::optional<ExperimentResult> look(const Plan& plan);

  // Whether the failure that was found comes under another plan, too. Nothing when there is no time
  // left, of the budget or of what measure_until() has set.
  std::optional<bool> measure(const Trial& trial, const Found& found);
  void measure_until(Duration elapsed) { measuring_ends_ = elapsed; }
  // How late the plan makes the thread that it delays most until the failure comes, in a run in
  // which it does. Nothing when there is no time left.
  std::optional<Duration> lateness_under(const Trial& trial, const Found& found);

  // By how late it must be to fail, and whether anybody has seen it.
  void judge(Found& found);
  LatenessLimits limits() const { return limits_of(machine_lateness_.value_or(MachineLateness{})); }
  void learn_machine_lateness();
  // Something else than margins.
  bool has_flaw() const;

  // Found what was wanted, out of budget, stopped, or broken.
  bool over() const;
  // No time is left to search; what is reserved is for confirming and measuring what was found.
  bool out_of_budget() const { return left() <= reserve(); }
  bool stopped() const { return stopped_; }
  bool always_fails() const { return always_fails_; }
  bool always_skipped() const;
  Duration left() const;  // of the budget
  Duration elapsed() const { return executor_.elapsed() - began_; }
  const std::vector<Outcome>& baseline() const { return baseline_; }
  // The longest that a run without delays was given of the budget and did not end in.
  Duration cut_short() const {
    return cut_short_ ? cut_short_->outcome.duration : Duration::zero();
  }
  int runs() const { return runs_; }
  void leave_out(std::string_view strategy) { coverage_.left_out.emplace_back(strategy); }
  const std::optional<Error>& error() const { return error_; }

  std::vector<Found>& found() { return found_; }
  bool has_found() const { return !found_.empty(); }
  const Coverage& coverage() const { return coverage_; }
  LatenessEffect lateness_effect() const;
  // The most visits that each of the intervention's threads made at its site in a profiling run,
  // together; at least 1.
  uint64_t visits_of(const Intervention& intervention) const;

  // A plan with the agent, without interventions, as quiet as a confirming run.
  Plan base_plan() const;

 private:
  Plan profile_plan() const;
  bool profile_runs();
  Duration needed_by_run() const;
  void take_for_hang();
  bool measure_base();
  bool never_stops() const;
  bool run_baseline();
  std::optional<ExperimentResult> run(const Trial& trial, Duration timeout,
                                      TrialEnded::Purpose purpose) {
    return run(trial, timeout, left(), purpose);
  }
  std::optional<ExperimentResult> run(const Trial& trial, Duration timeout, Duration share,
                                      TrialEnded::Purpose purpose);
  void tell(const Trial& trial, const ExperimentResult& result, TrialEnded::Purpose purpose);
  void tell_announced();
  bool confirm_until(int runs, const Trial& trial, Found& found);
  std::optional<bool> is_slow_only(const Trial& trial, const Found& found);
  void keep(Found found);
  void give_up(Found found);
  void count(const Trial& trial, const ExperimentResult& result, bool fired);

  Duration reserve() const;
  Duration expected(const Trial& trial) const;
  Duration to_confirm(const Trial& trial) const;
  bool is_affordable(const Trial& trial) const;
  bool is_hit(const Trial& trial, const ExperimentResult& result) const;
  bool is_known(const Trial& trial, const Outcome& outcome) const;
  Duration lateness_of(const Found& found) const;
  std::optional<Plausibility> plausibility_by_lateness(const Found& found) const;
  bool is_long(const Found& found) const { return lateness_of(found) > limits().overloaded; }
  bool shows_wanted(const ExperimentResult& result) const;
  bool is_again(const Trial& trial, const Found& found, const ExperimentResult& result) const;
  Duration planned_delay(const Plan& plan) const;
  Duration timeout_for(const Trial& trial) const;
  Count baseline_for(const std::string& signature) const;

  Executor& executor_;
  const std::shared_ptr<const Test> test_;
  const HuntOptions options_;
  EventStream& events_;
  const Duration began_;
  Profile profile_;
  std::optional<ExperimentResult> cut_short_;  // the longest profiling run that was
  std::string strategy_;
  std::string about_, announced_;  // that nobody was told yet
  int runs_ = 0;
  std::map<TrialEnded::Purpose, int> told_;
  std::vector<Outcome> baseline_;  // fresh runs without interventions
  std::vector<Found> found_;
  Coverage coverage_;
  Duration measuring_ends_ = Duration::max();
  bool asked_machine_ = false;
  std::optional<MachineLateness> machine_lateness_;
  bool line_is_unknown_ = false;
  bool always_fails_ = false;
  bool inverted_ = false;
  bool stopped_ = false;
  std::optional<Error> error_;
};

}  // namespace unflake
