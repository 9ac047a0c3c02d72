#pragma once

#include <signal.h>

namespace unflake::agent {

// The same set of signals without those that the agent must be able to take; `given` itself when
// there is nothing to take out.
const sigset_t* filter_mask(const sigset_t* given, sigset_t* copy);

}  // namespace unflake::agent
