#pragma once

#include <cstdint>
#include <string>

#include "stats/intervals.h"

namespace unflake {

// "3.0 %"; a rate below 1 % gets the decimals that two significant digits take: "0.030 %".
std::string percent(double rate);

// The same rounded up: a promise must not be better than the evidence.
std::string percent_at_most(double rate);

// "0.62..8.5 %"
std::string interval_text(const Interval& interval);

// "3/100 runs failed (3.0 %, 95 % interval 0.62..8.5 %)", or what 100 passes promise. `runs` are
// those that passed or failed.
std::string rate_text(int64_t failures, int64_t runs);

}  // namespace unflake
