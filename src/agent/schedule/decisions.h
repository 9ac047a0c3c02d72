#pragma once

#include "agent/schedule/state.h"

namespace unflake::agent {

inline constexpr int64_t step_ns = 1000;  // of virtual time, that pass with every decision

// Who goes on. `running` has announced its next step. Comes back when there is somebody: time may
// have passed until then.
Participant& decide(Participant& running);

// Somebody with a deadline, the first; nullptr: nobody has one.
Participant* next_to_time_out();

bool can_go_on_without(const Participant& thread);

}  // namespace unflake::agent
