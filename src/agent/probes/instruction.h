#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "agent/probes/probed_image.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// Whether the instruction is executed in a copy. A one-shot probe never needs one: it is gone by
// then.
bool needs_slot(const protocol::Probe& probe);

// Copies the instruction at `code`, such that it does there what it did here. False: the slot is
// too far away for that.
bool fill_slot(Slot& slot, uint32_t number, const protocol::Probe& probe, const uint8_t* code);

// Writable memory that code between `start` and `end` reaches with 32-bit displacements, or
// nullptr.
char* map_near(uint64_t start, uint64_t end, uint64_t size);

// What a probe does to the registers of the thread that hit it, so that the displaced instruction
// takes place.

// Does what the instruction at `address` would have done.
void emulate(const protocol::Probe& probe, uint64_t address, gregset_t& registers);

// Sends the thread to the copy of the instruction.
void enter_copy(const protocol::Probe& probe, uint64_t address, const uint8_t* copy,
                gregset_t& registers);

// Brings a thread back that was interrupted `progress` bytes into the copy.
void leave_copy(const protocol::Probe& probe, uint64_t address, uint64_t progress,
                gregset_t& registers);

// Gets ready to write often.
void prepare_to_write_code();

// Writes one byte into code that may be running in other threads. False: it was not possible.
bool write_code(uint64_t address, uint8_t byte);

}  // namespace unflake::agent
