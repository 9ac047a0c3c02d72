#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/detect/rerun_scheduler.h"

namespace unflake {

// A test that fails at random, as often as its rate says, and always takes as long.
struct SimulatedRuns {
  std::string name;
  double rate = 0;
  double seconds = 0;
};

// The tests of one project, and what is believed of them before the first run.
struct SimulatedProject {
  std::vector<SimulatedRuns> tests;
  RerunPrior prior;
  bool lengths_known = false;  // before the first run
};

// When tests were seen to both pass and fail, in seconds from the start, by runs that a scheduler
// chooses. Several projects share the clock: the next run is the most promising one of all.
std::vector<double> simulate_reruns(const std::vector<const SimulatedProject*>& projects,
                                    const RerunOptions& options, double until_seconds,
                                    uint64_t seed);

}  // namespace unflake
