#pragma once

#include <string>

#include "util/result.h"

namespace unflake {

// Whether the agent can be loaded into this program: an error says why not and what to do. A script
// is fine: what counts is the programs that it starts.
Result<void> check_loadable(const std::string& path);

}  // namespace unflake
