#pragma once

#include <set>
#include <vector>

#include "model/explore_report.h"
#include "search/schedule/schedule_runs.h"

namespace unflake {

// Instructions that are seen to be atomic, by their names: a lock prefix or the code around says
// so, or the type of a variable that they touch, or another instruction that touches the same.
using AtomicSites = std::set<SiteName>;
void add_atomic_sites(const Trace& trace, AtomicSites& sites);

// An access of a run that races with another one.
struct RacyAccess {
  ThreadNumber thread = 0;
  uint32_t site = no_index;
  uint32_t stack = no_index;
  uint64_t address = 0;
  uint8_t size = 0;
  bool writes = false;
  bool is_atomic = false;
};

struct RacyPair {
  RacyAccess first, second;  // as they came
};

// By vector clocks: locks, creation and join of threads, semaphores, barriers, what is done once,
// futexes, descriptors and atomics order what threads do. An attempt to take something counts as if
// it succeeded: that hides a race now and then, and never invents one. Each pair of instructions
// once.
std::vector<RacyPair> find_races(const Trace& trace, const AtomicSites& atomic_sites);

struct RaceOptions {
  ScheduleLimits limits;
  uint64_t seed = 1;
  uint64_t most_runs = 20;
  Plan plan;  // what else is told to the agent
};

// The data races of a test: looks for instructions that touch shared memory, and runs it under
// several schedules, because one may order by chance what another does not.
Result<RaceReport> look_for_races(TrialRunner& runner, const RaceOptions& options);

}  // namespace unflake
