#pragma once

#include <optional>

#include "model/plan.h"
#include "model/trace.h"
#include "search/repair/repair_runs.h"

namespace unflake {

// Threads that a schedule passed over although they could have gone on, each late before what it
// was about to do: for a run that nobody controls.
std::vector<Intervention> passed_over(const Trace& controlled, Duration late);

// A trial in which threads are late and the test fails as it does under the plan, whose orders or
// schedule say who comes first but not who is late. `controlled` is a run under the plan's schedule
// and may be missing. Nothing: no lateness that was tried makes the test fail.
std::optional<Trial> as_lateness(RepairRuns& runs, const Plan& plan, const Trace* controlled);

// A trial in which a thread that the test starts is late from its first step on, beside what the
// passing one does, and the test fails, more surely than it does by itself.
std::optional<Trial> late_from_its_start(RepairRuns& runs);

}  // namespace unflake
