#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/site.h"
#include "stats/rates.h"
#include "util/time.h"

namespace unflake {

// A wake-up that came before anybody waited for it: both are calls of the failing run.
struct MissedWakeUp {
  size_t wait = 0, signal = 0;
};

// A wait that may be all that keeps an order, as a plan names it.
struct SuspectedWait {
  SiteName site;
  std::string executable;
  std::optional<Duration> asked;
  int times = 1;
  bool is_sleep = false;
};

// The kinds of mistake that two runs suggest, and what experiments need to ask about them.
struct SuspectedCauses {
  bool async_wait = false, lost_wakeup = false, ordering = false;
  std::optional<SuspectedWait> wait;
  std::optional<MissedWakeUp> wake_up;
};

// What experiments show beside the order of the pair. Where there are no runs, nobody asked.
struct CauseFacts {
  Count late_as_a_whole;  // passes, with the late thread as late before all that it does
  Count longer_wait;      // passes, with the covering wait long enough for the late thread
  Count shorter_wait;     // failures, with that wait cut to nothing and nobody late
  Count waiting_first;    // passes, with the wake-up held back until somebody waits for it
  Count after_its_end;    // passes, with the barrier point held back until the late thread ended

  static bool holds(const Count& count) { return count.runs > 0 && count.hits == count.runs; }
  static bool never(const Count& count) { return count.runs > 0 && count.hits == 0; }
};

}  // namespace unflake
