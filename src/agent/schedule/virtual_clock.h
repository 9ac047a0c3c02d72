#pragma once

#include <stdint.h>
#include <time.h>

namespace unflake::agent {

// The time that a controlled run sees: it begins with the real one and passes by steps and jumps.
// Clocks of processors and of other processes stay what they are.
void begin_virtual_clock();

// The time of a clock as the program is to see it.
int64_t program_now(clockid_t clock);

// A look at a clock by the program. Who looks again and again waits for time to pass.
bool is_virtual(clockid_t clock);
int64_t look_at_clock(clockid_t clock);

}  // namespace unflake::agent
