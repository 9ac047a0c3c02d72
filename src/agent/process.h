#pragma once

#include <stdint.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// Writes this process into the report; again after a fork.
void meet_process();
void end_process();
uint32_t process_number();  // none: there was no room

void process_degraded(protocol::Degraded what);

uint64_t next_unknown_thread();

// Threads that an intervention has made late, while they live.
void late_thread_began();
void late_thread_ended();
// Between the two a thread sleeps because of the plan.
void delay_began();
void delay_ended();

// Waits, when the plan says so, until threads that were made late had the time to do what they do.
void hold_exit();

}  // namespace unflake::agent
