#pragma once

#include <vector>

#include "model/explore_report.h"
#include "search/schedule/schedule_runs.h"

namespace unflake {

struct ExploreOptions {
  ScheduleLimits limits;
  std::vector<Sampler> samplers;  // empty: the usual ones in turn
  uint64_t seed = 1;
  // How late a thread that could go on may be while time passes, at most.
  Duration longest_stall{std::chrono::milliseconds(100)};
  uint64_t most_exhaustive = 10'000;
  bool exhaustive = true;
  bool pairs_are_enough = false;       // ends when no pair of places is seen in a new order
  Plan plan;                           // what else is told to the agent
  bool accesses = true;                // exchange threads at memory accesses, too
  bool rates = true;                   // measure how often samplers find what was found
  uint64_t most_for_reduction = 1500;  // runs that make the schedule small
};

// Whether a test fails, in the way that the runner is after, under any schedule: samplers in turn,
// calls first and memory accesses second, nobody late first and then later and later; all schedules
// with few preemptions; until one fails and does so again, until nothing new is seen, or until the
// budget is over.
Result<ExploreReport> explore(TrialRunner& runner, const ExploreOptions& options);

}  // namespace unflake
