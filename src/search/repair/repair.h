#pragma once

#include "search/repair/verification.h"

namespace unflake {

struct RepairOptions {
  VerificationLimits verification;
  // What a comparison of a passing and a failing run says must wait: tried early.
  RecordedRuns::Compare compare;
  size_t most_barriers = 60;   // that are tried for each critical point
  std::optional<Slack> slack;  // of the repro, if it was measured
  MachineLateness machine{};   // that was seen when the failure was reproduced
  bool under_control = true;   // first, where the test goes the same way there
};

// From a test that can be made to fail to what must wait for what, tried in the running binary. The
// short cut: what the plan makes late is where the critical point is, and halving finds it; then
// places to wait are tried from the failure backwards. Whoever is on the way tells `found`, so that
// it is kept when the search is stopped.
RepairReport find_repair(RepairRuns& runs, const RepairOptions& options,
                         const std::function<void(const EnforcedRepair&)>& found = {});

}  // namespace unflake
