#pragma once

#include <optional>

#include "app/agent_command.h"
#include "search/reproduce/findings.h"

namespace unflake {

// What a hunt for failures of this test has found, as a repro.
Repro repro_of(const Found& found, OneTest& one, uint64_t seed);

// How its sites look in the source, so that they are found again after an edit.
void describe(Repro& repro, const Profile& profile, const OneTest& one);

// How late this machine is, plain and while it is made scarce. What it cannot tell of counts as a
// quiet machine.
std::optional<MachineLateness> machine_lateness();

}  // namespace unflake
