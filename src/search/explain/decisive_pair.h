#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/repair/points.h"
#include "search/repair/repair_runs.h"

namespace unflake {

// What experiments show about the order that decides: the last thing that a thread must not be late
// for, and the last moment at which another one can still wait for it.
struct DecisivePair {
  std::optional<ExperimentResult> passing, failing;  // with lines watched where that was possible
  std::optional<CriticalPoint> critical;
  std::optional<Plan> late_there;  // under which `failing` was recorded instead of the test's own
  std::optional<ThreadStep> barrier;
  // By their calls in the passing and in the failing run: what a thread comes to that only its own
  // time overtakes; and what hands over, where both points are the taking of a lock for that.
  std::optional<std::pair<size_t, size_t>> own_way, hand_over;
  // Of the late thread, where nobody was found whose waiting helps: between this step and the
  // critical point it must not be late, and before it it may be.
  std::optional<ThreadStep> gap_from;
  // The first line that the failing thread comes to before it fails, and never when the test
  // passes.
  std::optional<CodeSpot> other_way;
  // With the critical point first, under what makes the test fail: passes. With the barrier point
  // first, when nobody is late: failures.
  Count kept, reversed;
  std::vector<std::string> tried;  // what was done and what came of it, for people
  int runs = 0;
};

struct DecisivePairOptions {
  int runs_each_way = 3;
  Duration shortest_bound{std::chrono::milliseconds(500)};  // of a hold
};

DecisivePair find_decisive_pair(RepairRuns& runs, const DecisivePairOptions& options = {});

}  // namespace unflake
