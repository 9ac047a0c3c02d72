#pragma once

#include <stdint.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// Room for one more event of this thread, its oldest overwritten when there is no other; nullptr:
// the thread has no room at all. Lost events are counted.
protocol::Event* next_event();

}  // namespace unflake::agent
