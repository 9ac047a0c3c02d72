#pragma once

#include <vector>

#include "model/balance_report.h"
#include "model/plan.h"

namespace unflake {

// What each of the searched values is set to, in their order.
using Setting = std::vector<Duration>;

Duration scaled(Duration value, double factor);
double to_ms(Duration duration);
Duration from_ms(double ms);

// What the test itself asks for. Times that are computed at run time are scaled together, and the
// longest of them stands for all.
Setting own_setting(const std::vector<TimeValue>& values);

// Whether a run with this is other than one with the test's own time.
bool is_set(const TimeValue& value, Duration to);

// A plan under which the test is given these times instead of its own.
Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting);

Conditions conditions_for(LoadLevel load, int cores);

}  // namespace unflake
