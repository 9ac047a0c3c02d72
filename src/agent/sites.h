#pragma once

#include <stdint.h>

#include "agent/thread_state.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// The number of a site in the report; none: there was no room.
uint32_t number_of_site(uint64_t key, protocol::Address address, uint16_t api, uint32_t probe);

// What this thread knows about the place that called, from which it can be acted on; nullptr: the
// call is to pass untouched.
protocol::Tally* tally_of_call(protocol::Api api, const Caller& caller);
protocol::Tally* tally_of_probe(uint32_t probe, uint64_t address);

// Whether it is a stand-in: the site itself counts, and the next visit starts from nothing.
inline bool is_spare(const protocol::Tally& tally) {
  return tally.key == 0;
}

inline constexpr uint16_t no_plan_site = 0xffff;

}  // namespace unflake::agent
