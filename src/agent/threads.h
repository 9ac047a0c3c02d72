#pragma once

#include <pthread.h>
#include <stdint.h>

#include "agent/thread_state.h"

namespace unflake::agent {

// Makes this thread known, when it is not yet; false: the agent has nothing to do with it (any
// more).
bool meet_this_thread();

// The first thread of this process, and what becomes of it when the process forks.
void meet_first_thread();

// Names a thread that this one is about to start, or to become by a fork.
Birth name_child();
void meet_child(const Birth& birth);

}  // namespace unflake::agent
