#pragma once

#include <string>
#include <vector>

#include "trace/causes.h"

namespace unflake {

// What a rule found; a score of 0 means that it does not apply.
struct Evidence {
  double score = 0;
  std::vector<std::string> texts;
};

// One rule for each root cause; causes.cc has the list of them.
Evidence async_wait(const Clues& clues);
Evidence ordering(const Clues& clues);
Evidence lost_wakeup(const Clues& clues);
Evidence process_handover(const Clues& clues);

Evidence exact_timing(const Clues& clues);
Evidence starvation(const Clues& clues);
Evidence resource(const Clues& clues);

Evidence teardown_race(const Clues& clues);
Evidence deadlock(const Clues& clues);

}  // namespace unflake
