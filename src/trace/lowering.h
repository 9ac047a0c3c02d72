#pragma once

#include "model/plan.h"
#include "trace/lowered_plan.h"
#include "trace/raising.h"

namespace unflake {

// Turns the names of a plan into addresses. Calls must have been seen by an earlier run of the
// test; lines and functions are looked up in its images. An error names what is like it.
Result<LoweredPlan> lower(const Plan& plan, CodeMap& code, const TestMemory& memory);

}  // namespace unflake
