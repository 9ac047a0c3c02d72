#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/site.h"
#include "util/duration.h"

namespace unflake {

// What became of the times that a place asked for.
enum class TimeUse {
  wait,      // always ran out: the test pays for it in full
  timeout,   // always ended early: it costs nothing as long as nothing is wrong
  mixed,     // both
  not_seen,  // armed here, ends elsewhere, and no call was seen that tells how
};

std::string_view to_string(TimeUse use);

// Less than this is how a deadline is met, and no other time.
bool are_about_the_same(Duration least, Duration most);

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
  Duration spent{};              // in all visits of all runs
  std::vector<Duration> early;   // how long the visits that ended early took; a bounded number
  bool could_end_early = false;  // something was waited for: it does not only let time pass

  // A line that leads here, and what it asks for.
  struct Caller {
    std::string location;  // for people
    Duration least{}, most{};
    uint64_t visits = 0;
    Duration spent{};
  };
  // Of a place that passes on what its callers say, most time spent first: at least two of them ask
  // for times of their own. Empty: it is no such place.
  std::vector<Caller> callers;

  // Else it is computed at run time, or one place is reached with several times.
  bool is_constant() const;
  TimeUse use() const;
  bool is_never_when_zero() const { return group == "timer" || site.api == "setsockopt"; }
  // A time-out that nothing ended early in any run. It may be there to show that nothing happens
  // for so long: then a shorter one shows less.
  bool is_quiet() const { return could_end_early && use() == TimeUse::wait; }
  Duration spent_per_run() const { return runs ? spent / static_cast<int64_t>(runs) : Duration{}; }
};

}  // namespace unflake
