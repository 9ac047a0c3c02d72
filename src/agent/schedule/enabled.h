#pragma once

#include "agent/schedule/participants.h"

namespace unflake::agent {

// Whether a thread would not block now, its deadline left aside.
bool is_ready(const Participant& thread);

// Whether it could go on if its deadline came now.
bool may_time_out(const Participant& thread);

// The thread that has what this one waits for, as the system names it; 0: nobody, or not known.
uint32_t holder_of_object(const Step& step);

bool has_children();

}  // namespace unflake::agent
