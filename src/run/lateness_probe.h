#pragma once

#include "model/plan.h"
#include "util/duration.h"
#include "util/result.h"

namespace unflake {

// How late a thread is on this machine under the conditions, at the worst of what was seen in about
// the given time: after a sleep, when it is woken, when it is started, while it computes. The
// process must have a single thread.
Result<Duration> probe_lateness(const Conditions& conditions, Duration time);

}  // namespace unflake
