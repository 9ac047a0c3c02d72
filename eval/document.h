#pragma once

#include <string>
#include <vector>

#include "scores.h"

namespace unflake::eval {

// docs/EVALUATION.md: what was measured, against the targets, then program by program. `appended`
// are further sections.
std::string document(const Results& results, const std::vector<Measured>& all,
                     const std::string& appended);

}  // namespace unflake::eval
