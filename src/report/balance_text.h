#pragma once

#include <string>

#include "model/balance_report.h"
#include "report/layout.h"

namespace unflake {

// With `all`, every setting that was tried, at every load.
std::string balance_text(const BalanceReport& report, const Style& style, bool all = false);
std::string claim_text(const ClaimReport& report, const Style& style);
std::string suite_balance_text(const SuiteBalance& suite, const Style& style);

}  // namespace unflake
