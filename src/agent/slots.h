#pragma once

#include <stdint.h>

#include "agent/probed_image.h"
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

}  // namespace unflake::agent
