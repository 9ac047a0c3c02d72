#pragma once

#include "balance_scores.h"

namespace unflake::eval {

// The section of docs/EVALUATION.md on time values begins with it.
constexpr const char* balance_heading = "## Time values";

std::string balance_section(const BalanceResults& results, const std::vector<MeasuredTimes>& all,
                            const std::vector<std::string>& not_measured);

}  // namespace unflake::eval
