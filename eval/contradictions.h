#pragma once

#include <string>
#include <vector>

#include "util/json.h"

namespace unflake::eval {

// What the experiments of an explanation, as `unflake explain --json` prints it, say against its
// words. This is written down here once more, so that a mistake there shows.
std::vector<std::string> contradictions_in(const nlohmann::json& explanation);

}  // namespace unflake::eval
