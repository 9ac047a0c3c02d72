#pragma once

#include <string>

#include "model/balance_report.h"

namespace unflake {

// Failure rate and run time by what one of the values was set to, with intervals, at each load:
// also where it is now, what is proposed, and between which values the limit is. Empty when the
// value was not varied.
std::string balance_svg(const BalanceReport& report, size_t value);

// One page each, which needs nothing else.
std::string balance_html(const BalanceReport& report);
std::string suite_balance_html(const SuiteBalance& suite);

}  // namespace unflake
