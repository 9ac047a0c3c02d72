#pragma once

#include "model/outcome.h"
#include "model/plan.h"

namespace unflake {

// How a run of the test ended, from how its process ended and what it printed.
Outcome read_outcome(const Test& test, const ProcessResult& process);

// The same for all tests that the process ran: how each of them ended, by what its framework
// printed of it. A test that was not reached is skipped.
void read_outcomes(const TestOrder& tests, ExperimentResult& result);

}  // namespace unflake
