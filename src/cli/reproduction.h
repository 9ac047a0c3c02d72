#pragma once

#include <optional>

#include "app/agent_command.h"
#include "model/repro.h"
#include "search/reproduce/findings.h"

namespace unflake {

// What a hunt has found, as the repro of a test, with what its sites look like in the source.
Repro repro_of(const Found& found, OneTest& one, const Profile& profile, uint64_t seed);

// What it cannot tell of counts as a quiet machine.
std::optional<MachineLateness> machine_lateness();

}  // namespace unflake
