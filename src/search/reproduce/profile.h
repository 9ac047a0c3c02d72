#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"

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

  int failures() const;
  // The first run that passed, or else that ended by itself, or else any; null when none has a
  // trace.
  const ExperimentResult* model() const;
};

void add(Profile& profile, ExperimentResult result);

// A source line is in a profile only because it was watched: it is no place for a delay, other than
// calls and the functions that the user named.
bool is_watched_line(const SiteName& site);

// A delay at every visit of the place.
Intervention delay_at(const Place& place, Duration duration,
                      Intervention::Position position = Intervention::Position::before);

}  // namespace unflake
