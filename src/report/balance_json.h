#pragma once

#include <string>

#include "model/balance_report.h"

namespace unflake {

// docs/formats.md describes the members.
std::string balance_json(const BalanceReport& report);
std::string claim_json(const ClaimReport& report);
std::string suite_balance_json(const SuiteBalance& suite);

}  // namespace unflake
