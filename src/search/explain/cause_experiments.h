#pragma once

#include <string>
#include <vector>

#include "model/cause_facts.h"
#include "search/explain/decisive_pair.h"
#include "search/repair/repair_runs.h"

namespace unflake {

// What else experiments show about the kind of mistake, beside the order that decides.
struct CauseExperiments {
  CauseFacts facts;
  std::vector<std::string> tried;  // what was done and what came of it, for people
};

// Asks what would contradict the causes that two runs suggest, in the runs that have shown the
// pair: `suspected` was made from those.
CauseExperiments ask_for_cause(RepairRuns& runs, const DecisivePair& pair,
                               const SuspectedCauses& suspected);

}  // namespace unflake
