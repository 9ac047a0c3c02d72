#pragma once

#include <functional>
#include <optional>
#include <string>

#include "search/schedule/schedule_runs.h"

namespace unflake {

struct ExhaustiveOptions {
  // A preemption takes the turn from a thread that could go on. None: as many as you like.
  std::optional<int> most_preemptions;
  uint64_t most_schedules = 10'000;
  Schedule base;  // switch points at memory accesses, if any
};

struct ExhaustiveResult {
  uint64_t schedules = 0;  // that were run; all others are equal to one of them
  bool is_complete = false;
  bool left_some_out = false;  // others have more preemptions, or end the process early
  std::string why_incomplete;
};

// False: enough was seen.
using RunSchedule = std::function<std::optional<ScheduleRun>(const Schedule&)>;
using SeeRun = std::function<bool(const ScheduleRun&)>;

// Every order in which a test can happen, depth first. Runs that differ in the order of independent
// accesses only are made once: without a bound by sleep sets. With one, these would leave out
// schedules whose twin needs more preemptions than the bound allows; then a state that was reached
// before in an equal order, by the same thread and with no more preemptions, is not left again.
ExhaustiveResult explore_all(const RunSchedule& run, const ExhaustiveOptions& options,
                             const SeeRun& see);

}  // namespace unflake
