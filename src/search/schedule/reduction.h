#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/schedule/exhaustive.h"

namespace unflake {

// The thread that arrives at its nth point gives its turn to another one.
struct ThreadSwitch {
  ThreadNumber from = 0;
  uint64_t arrival = 1;
  ThreadNumber to = 0;
  bool operator==(const ThreadSwitch&) const = default;
};

// Where a run went on with another thread than it would have by itself.
std::vector<ThreadSwitch> switches_of(const ControlledRun& run);

// The run as a list of decisions, and nothing drawn.
Schedule as_decisions(const ScheduleRun& run);

struct Reduction {
  ScheduleRun run;  // fails in the same way, with the fewest exchanges that were found
  std::vector<ThreadSwitch> switches;
  // That give the failure by themselves; none when orders of accesses do not describe it.
  std::vector<OrderConstraint> orders;
  std::vector<std::string> sentences;  // what has to happen, as a person would say it
  // Orders under which it fails whoever goes first otherwise; none when none were found.
  std::vector<OrderConstraint> enough;
};

// Fewer exchanges of threads, checked by runs; then the orders around those that are left. Stops at
// a budget of runs with what it has.
Reduction reduce(const RunSchedule& run, const ScheduleRun& failing, uint64_t most_runs);

// What has to happen in the run, as a person would say it: the orders, else its exchanges.
std::vector<std::string> order_sentences(const ScheduleRun& run,
                                         const std::vector<OrderConstraint>& orders);

// "main waits at left.cc:1 (pthread_mutex_lock) for what main.cc:2#1 holds"
std::vector<std::string> deadlock_sentences(const Trace& trace);

// "main", "pool.cc:31#2"; a number for a thread that the trace does not name.
std::string thread_text(const Trace& trace, ThreadNumber thread);

}  // namespace unflake
