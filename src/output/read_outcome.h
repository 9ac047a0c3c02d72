#pragma once

#include "model/outcome.h"

namespace unflake {

// How a run of the test ended, from how its process ended and what it printed.
Outcome read_outcome(const Test& test, const ProcessResult& process);

}  // namespace unflake
