#pragma once

#include <string>
#include <vector>

#include "model/trace.h"

namespace unflake {

// Who waited for whose lock when a run ended.
struct StuckLocks {
  struct Wait {
    uint32_t thread = no_index;
    uint32_t site = no_index;
    uint32_t holder = no_index;  // no_index: not known
  };
  std::vector<Wait> waits;
  std::vector<size_t> cycle;  // waits, each for the lock of the next one's thread
};

StuckLocks stuck_locks(const Trace& trace);

}  // namespace unflake
