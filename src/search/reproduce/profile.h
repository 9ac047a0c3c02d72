#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "search/trial/trial_runner.h"
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
  Duration budget{std::chrono::minutes(5)};  // for everything, the slack included
  // Until something fails at all: without a sign the search ends then, with one it goes on.
  Duration patience{Duration::max()};
  Duration timeout{std::chrono::minutes(10)};     // of a profiling run
  Duration time_offset{std::chrono::seconds(2)};  // what a run may take beyond what is expected
  std::optional<Duration> initial_delay;          // FlakeRake's initial sleep, 5 s in the paper
  int profile_runs = 5;
  int runs_under_orders = 300;  // that all fail before an order is kept in place of a schedule
  DelayLimits delays;
  Order order = Order::turns;
  size_t most_candidates = 0;  // of guided, as FlakeEcho's k; 0: all
  std::vector<std::string> groups_off;
  std::vector<std::string> extra_functions;
  bool system_calls = false;
  bool any_is_enough = false;  // without a wanted failure: the first one ends the search
  uint64_t seed = 1;
  std::set<std::string> known_signatures;  // of failures that the test has shown before
  // How late the machine is, asked once, when there is something to judge by it. Without it every
  // machine counts as quiet.
  std::function<std::optional<MachineLateness>()> measure_lateness;
};

// A plan with the agent, without interventions, as quiet as a confirming run.
Plan base_plan(const HuntOptions& options);

// A site in a thread: where one delay can be put.
struct Place {
  SiteName site;
  ThreadName thread;
  std::string executable;  // base name, as an intervention wants it
  std::string group;
  uint64_t visits = 0;  // the most that a run showed
  Duration first{};     // since the run began; in the first run that showed it
};

// What a test does when nobody interferes, from several runs under the agent.
struct Profile {
  std::vector<ExperimentResult> runs;
  std::vector<Place> places;  // that any run showed, by when they were first reached
  Duration average{};         // of the runs that did not time out
  Duration longest{};
  Duration cut_short{};       // the longest that the budget gave a run which did not end in it
  bool always_fails = false;  // and so did runs that were made to tell how often

  int failures() const;
  bool never_stops() const;  // no run did
  bool is_always_skipped() const;
  // The first run that passed, or else that ended by itself, or else any; null when none has a
  // trace.
  const ExperimentResult* model() const;
};

void add(Profile& profile, ExperimentResult result);

// The most visits that each of the intervention's threads made at its site in a profiling run,
// together; at least 1.
uint64_t visits_of(const Profile& profile, const Intervention& intervention);

// A source line is in a profile only because it was watched: it is not a place for a delay, other
// than calls and the functions that the user named.
bool is_watched_line(const SiteName& site);

// A delay at every visit of the place.
Intervention delay_at(const Place& place, Duration duration,
                      Intervention::Position position = Intervention::Position::before);

// How long trials take by what a profile shows, and how long they may.
class TrialTimes {
 public:
  TrialTimes(const Profile& profile, const HuntOptions& options)
      : profile_(profile), options_(options) {}

  // A run that comes to its delay once; what comes to it again and again is cut short in the end.
  Duration expected(const Trial& trial) const;
  // What the plan can add when the delays come one after another.
  Duration added_by(const Plan& plan) const;
  Duration limit_for(const Trial& trial) const;
  // After so long a run hangs, by all that is known of how long one takes.
  Duration until_it_hangs() const;
  // The first delay of strategies that delay many places at once; unless the user chose it, long
  // enough to outlast the whole test several times.
  Duration initial_delay() const;

 private:
  const Profile& profile_;
  const HuntOptions& options_;
};

// Makes the runs of a profile.
class Profiling {
 public:
  Profiling(TrialRunner& runner, const HuntOptions& options, Profile& profile)
      : runner_(runner), options_(options), times_(profile, options), profile_(profile) {}

  // False: there is nothing to search: the test is skipped, or no run could be made.
  bool operator()();

 private:
  Plan plan() const;
  bool is_wanted() const;
  bool is_enough() const;
  std::optional<Observation> run();
  bool take_refused(const ExperimentResult& result);
  void take_for_hang();

  TrialRunner& runner_;
  const HuntOptions& options_;
  const TrialTimes times_;
  Profile& profile_;
  std::optional<ExperimentResult> cut_short_;  // the longest run that was
  int cut_short_in_vain_ = 0;
  bool line_is_unknown_ = false;
};

}  // namespace unflake
