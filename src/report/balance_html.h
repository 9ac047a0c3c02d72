#pragma once

#include <string>

#include "model/balance_report.h"

namespace unflake {

// One page each, which needs nothing else.
std::string balance_html(const BalanceReport& report);
std::string suite_balance_html(const SuiteBalance& suite);

}  // namespace unflake
