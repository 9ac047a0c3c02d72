#pragma once

#include "util/duration.h"

namespace unflake {

struct MachineSpeed {
  Duration median{}, fastest{}, slowest{};
  int rounds = 0;
};

// How long a fixed piece of work takes here: computing, and handing over between two threads. What
// a test waits for is made of both.
MachineSpeed measure_machine_speed();

}  // namespace unflake
