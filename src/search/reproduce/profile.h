#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "search/reproduce/hunt_options.h"
#include "search/trial/trial_runner.h"

namespace unflake {

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

// A source line is in a profile only because it was watched: it is no place for a delay, other than
// calls and the functions that the user named.
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
  // What the plan can add when every delay comes behind the other.
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
