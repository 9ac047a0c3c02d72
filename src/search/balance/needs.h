#pragma once

#include <optional>
#include <span>

#include "search/balance/balance_runs.h"

namespace unflake {

// How long what a wait waits for takes, when the runs show it. The runs that are near the edge tell
// what it is: a call of another thread that every passing run had before the wait was over, and
// every failing run had not. From then on each run measures how long it took, whatever its setting,
// and a hundred such times say more of the rare ones than a hundred passes do.
// `number` is the value's place in the settings of the runs.
std::optional<Needed> needed_time(const TimeValue& value, size_t number,
                                  std::span<const KeptRun> runs, double tolerance);

}  // namespace unflake
