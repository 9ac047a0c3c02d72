#pragma once

#include <stddef.h>
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
void delay_began(uint64_t at_most_ns);
void delay_ended();

// Waits, when the plan says so, until delayed threads had the time to do their work.
void hold_exit();

// What a program that this one starts needs to be followed: LD_PRELOAD and the memory's name.

// Remembers both as this process has found them; it may clear its environment later.
void remember_inheritance(const char* memory_name);

// How many pointers follow_environment writes at most for this environment.
size_t followed_size(char* const* environment);
// Writes the environment into `room` with what the child needs, and returns it; `environment`
// itself when it has that already. `preload` has room for preload_size characters.
inline constexpr size_t preload_size = 4096;
char* const* follow_environment(char* const* environment, char** room, char* preload);

// Makes the agent ready, while the process has one thread. Once; until then hooks pass through.
void start();

// Takes part in the run whose memory has this name; nullptr: there is none.
void join_run(const char* memory_name);

}  // namespace unflake::agent
