#pragma once

#include "search/reproduce/hunt.h"

namespace unflake {

// Takes interventions and visits out of the plan that the failure does not need. Like the
// measurement below it ends when so much time has elapsed, or with the budget.
void shrink(Hunt& hunt, Found& found, Duration until = Duration::max());

// The least lateness under which the failure comes in more than half of the runs, and how often it
// comes under the others that were tried on the way. All delays of the plan are scaled together.
void measure_slack(Hunt& hunt, Found& found, Duration until = Duration::max());

// All delays scaled so that the longest one is this long.
Plan with_longest_delay(const Plan& plan, Duration longest);

}  // namespace unflake
