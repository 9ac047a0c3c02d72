#pragma once

#include <stdint.h>

#include "agent/record/threads.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// The return addresses above this call, innermost first, without the agent's own.
void take_stack(StackSnapshot& stack);

// The same for a hooked call, as it was found before when the return addresses are still all where
// they were: a fraction of the cost of unwinding. nullptr: there is no memory.
KnownStack* stack_of(const Caller& caller);
uint32_t number_of_stack(KnownStack& known);

// Its number in the report, the same for the same stack; none: there was no room.
uint32_t number_of_stack(const StackSnapshot& stack);

// Identifies a stack across runs: by images' names and offsets.
uint64_t hash_of_stack(const StackSnapshot& stack);

}  // namespace unflake::agent
