#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "protocol/agent_protocol.h"

// What a probe does to the registers of the thread that hit it, so that the displaced instruction
// takes place.
namespace unflake::agent {

// Does what the instruction at `address` would have done.
void emulate(const protocol::Probe& probe, uint64_t address, gregset_t& registers);

// Sends the thread to the copy of the instruction.
void enter_copy(const protocol::Probe& probe, uint64_t address, const uint8_t* copy,
                gregset_t& registers);

// Brings a thread back that was interrupted `progress` bytes into the copy.
void leave_copy(const protocol::Probe& probe, uint64_t address, uint64_t progress,
                gregset_t& registers);

}  // namespace unflake::agent
