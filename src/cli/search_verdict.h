#pragma once

#include <string>
#include <vector>

#include "search/reproduce/hunt.h"

namespace unflake {

// Why nothing was reproduced, in lines of "topic: text": what was reached, tried and not covered,
// and what to try next. Only what was counted is claimed.
std::vector<std::string> not_reproduced_lines(const Hunt& hunt);

}  // namespace unflake
