#pragma once

#include "agent/schedule/state.h"

namespace unflake::agent {

// Whether a thread would not block now, its deadline left aside.
bool is_ready(const Participant& thread);

// Whether it could go on if its deadline came now.
bool may_time_out(const Participant& thread);

// When the next timer goes off that it waits for as a descriptor; forever: it waits for none.
int64_t timer_of(const Participant& thread);

// The thread that has what this one waits for, as the system names it; 0: nobody, or not known.
uint32_t holder_of_object(const Step& step);

// Whether the question if it can go on is one to its own process: about memory or descriptors.
bool only_own_process_knows(const Participant& thread);

}  // namespace unflake::agent

namespace unflake::agent {

inline constexpr int64_t step_ns = 1000;  // of virtual time, that pass with every decision

// Who goes on. `running` has announced its next step. Comes back when there is somebody: time may
// have passed until then.
Participant& decide(const Participant& running);

// Somebody with a deadline, the first; nullptr: nobody has one.
Participant* next_to_time_out();

bool can_go_on_without(const Participant& thread);

}  // namespace unflake::agent
