#pragma once

#include <string>
#include <vector>

#include "scores.h"

namespace unflake::eval {

// Where other programs write their sections.
constexpr const char* repeatability_heading = "## The same schedule again";
constexpr const char* factors_heading = "## Causes in the surroundings";
constexpr const char* bisect_heading = "## Commits that made tests flaky";
constexpr const char* orders_heading = "## Tests that depend on an order";
constexpr const char* suite_heading = "## Flaky tests among sound ones";

// docs/EVALUATION.md: what was measured, against the targets, then program by program. `appended`
// are further sections.
std::string document(const Results& results, const std::vector<Measured>& all,
                     const std::string& appended);

}  // namespace unflake::eval
