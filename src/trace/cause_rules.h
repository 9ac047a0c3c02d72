#pragma once

#include <string>
#include <vector>

#include "trace/causes.h"

namespace unflake {

// What a rule found; a score of 0 means that it does not apply.
struct CauseEvidence {
  double score = 0;
  std::vector<std::string> texts;
};

// One rule for each root cause; causes.cc has the list of them.
CauseEvidence async_wait(const Clues& clues);
CauseEvidence ordering(const Clues& clues);
CauseEvidence lost_wakeup(const Clues& clues);
CauseEvidence process_handover(const Clues& clues);

CauseEvidence exact_timing(const Clues& clues);
CauseEvidence starvation(const Clues& clues);
CauseEvidence resource(const Clues& clues);

CauseEvidence teardown_race(const Clues& clues);
CauseEvidence deadlock(const Clues& clues);

}  // namespace unflake
