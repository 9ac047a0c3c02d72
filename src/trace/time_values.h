#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace unflake {

// What became of the times that a place asked for.
enum class TimeUse {
  wait,      // always ran out: the test pays for it in full
  timeout,   // always ended early: it costs nothing as long as nothing is wrong
  mixed,     // both
  not_seen,  // armed here, ends elsewhere, and no call was seen that tells how
};

std::string_view to_string(TimeUse use);

// A time value that code passes to a sleep, a wait with a time-out or a timer; all threads of all
// runs together.
struct TimeValue {
  SiteName site;
  std::string executable;  // base name, as an intervention wants it
  std::string group;       // "sleep", "condition", "poll", "timer" ...
  std::string location;    // for people
  std::string file;        // as full as stacks tell it; empty: not known
  // Calls that system libraries and frameworks make for themselves are shown, not changed.
  bool is_project = true;
  bool is_system_call = false;  // seen only because the calls of system libraries were looked at

  Duration least{}, most{};  // asked for
  uint64_t runs = 0;         // that came here
  uint64_t visits = 0;
  uint64_t ran_out = 0;
  uint64_t ended_early = 0;
  Duration spent{};             // in all visits of all runs
  std::vector<Duration> early;  // how long the visits that ended early took; a bounded number

  // Else it is computed at run time, or one place is reached with several times.
  bool is_constant() const;
  TimeUse use() const;
  Duration spent_per_run() const { return runs ? spent / static_cast<int64_t>(runs) : Duration{}; }
};

// Of runs under the agent with events, most time spent first. A wait that was made again for the
// rest of its time (a notified condition whose predicate does not hold yet) counts as one.
std::vector<TimeValue> time_values(std::span<const Trace* const> runs);

}  // namespace unflake
