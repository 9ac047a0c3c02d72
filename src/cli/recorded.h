#pragma once

#include <memory>
#include <string>

#include "cli/agent_command.h"
#include "model/repro.h"

namespace unflake {

// The test that a repro is about, in the program as it is now. `other_target` takes the place of
// the recorded executable or build folder unless it is empty.
Result<std::unique_ptr<OneTest>> find_recorded_test(const Project& project, const Repro& repro,
                                                    const std::string& other_target,
                                                    OneTestOptions options);

// A run without interventions in which everything is recorded that the plan could name.
Plan profile_plan(const Repro& repro);

}  // namespace unflake
