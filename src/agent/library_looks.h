#pragma once

#include <stdint.h>
#include <time.h>

#include "agent/thread_state.h"

namespace unflake::agent {

// The C++ library does not believe what a wait returns: right afterwards it looks at its clock and
// compares that with the deadline that it knows. When the plan has changed the time of the wait,
// these looks see what they would have seen with that time; nobody else's do.
//
// To be called when the wait is over, with the program's deadline and the plan's on `clock`.
void foresee_looks(clockid_t clock, int64_t given, int64_t changed, bool timed_out, uint8_t count);

// At the next look of this thread, when looks are foreseen.
void tell_foreseen(const void* caller, clockid_t clock, timespec* time);

// Another call than a look of the library says that none will come.
inline void forget_foreseen(protocol::Api api) {
  if (this_thread.looks.count != 0 && api != protocol::Api::clock_gettime &&
      api != protocol::Api::sched_yield)
    this_thread.looks.count = 0;
}

}  // namespace unflake::agent
