#pragma once

#include "lifecycle/gate.h"
#include "store/store.h"

namespace unflake {

// What history knows of a failure that is in quarantine.
struct QuarantinedPast {
  std::optional<TimePoint> last_seen;
  std::optional<TimePoint> last_run;  // of the test
  CleanRuns runs;
};

Result<QuarantinedPast> past_of(Store& store, const QuarantineEntry& entry);

LifecycleEvent lifecycle_event(LifecycleEvent::Kind kind, const QuarantineEntry& entry,
                               TimePoint at);

}  // namespace unflake
