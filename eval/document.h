#pragma once

#include <string>
#include <vector>

#include "scores.h"

namespace unflake::eval {

// Where another program writes its section.
constexpr const char* repeatability_heading = "## The same schedule again";

// docs/EVALUATION.md: what was measured, against the targets, then program by program. `appended`
// are further sections.
std::string document(const Results& results, const std::vector<Measured>& all,
                     const std::string& appended);

}  // namespace unflake::eval
