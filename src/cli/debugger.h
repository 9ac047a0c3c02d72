#pragma once

#include "model/outcome.h"
#include "run/agent_session.h"
#include "suite/adapter.h"

namespace unflake {

// Starts gdb on a run of the test under the agent, on the user's own terminal, and returns its
// exit status. gdb stops where a check fails. Delays at lines and functions are refused: they work
// by the traps that a debugger takes for itself.
Result<int> debug_with_gdb(const Test& test, const AgentRun& run, FailureKind failure,
                           const std::vector<std::string>& gdb_arguments);

// Records a run with rr, which says where the recording is. The exit status is rr's.
Result<int> record_with_rr(const Test& test, const AgentRun& run, Launcher& launcher);

}  // namespace unflake
