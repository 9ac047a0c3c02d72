#pragma once

#include <span>
#include <string>
#include <vector>

#include "lifecycle/quarantine.h"
#include "model/events.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// A run of a test as the gate sees it, whoever made it.
struct GateAttempt {
  OutcomeKind outcome = OutcomeKind::pass;
  std::string signature;  // of a failing run
  std::string headline;
  bool sanitizer = false;      // its failure was reported by a sanitizer
  bool without_place = false;  // it would be taken for any other crash of the test
  int runs = 1;                // that were like this one
};

GateAttempt gate_attempt_of(const Outcome& outcome);

// Only what was run here can be reproduced here.
enum class RunsMade { here, elsewhere };

// Whether a test's runs may pass a build. Knows the quarantine and the day, and nothing about how
// the runs were made.
class Gate {
 public:
  Gate(Quarantine quarantine, Day today, RunsMade made = RunsMade::here)
      : quarantine_(std::move(quarantine)), today_(today), made_(made) {}

  const Quarantine& quarantine() const { return quarantine_; }
  Day today() const { return today_; }

  GateDecision decide(const TestId& test, std::span<const GateAttempt> attempts) const;

 private:
  Quarantine quarantine_;
  Day today_;
  RunsMade made_;
};

// What the entries of a target ask for, whatever its tests do. Without a target: of all.
std::vector<Note> expiry_warnings(const Quarantine& quarantine, Day today,
                                  const std::string& target, int days = 7);

// The entries of a target whose tests it no longer has. `listed`: all that it has.
std::vector<QuarantineEntry> gone_entries(const Quarantine& quarantine, const std::string& target,
                                          std::span<const std::string> listed);

// A failure that was quarantined and has not come back for some runs.
struct CleanRuns {
  int64_t clean = 0;             // runs since it was last seen, none of which failed
  int64_t earlier_failures = 0;  // of that signature, up to then
  int64_t earlier_runs = 0;
};

struct LiftRule {
  int64_t least_runs = 100;
  double factor = 3;  // how far below the earlier rate the bound must be
};

// The entry is proposed for lifting when the rate that the clean runs leave possible is, at 95 %
// confidence, below the rate that it had by the rule's factor.
bool may_be_lifted(const CleanRuns& runs, const LiftRule& rule = {});

// "0 of 300 runs failed: rate below 1.0 % at 95 % confidence; before, 5 of 100 did (5.0 %)"
std::string clean_runs_text(const CleanRuns& runs);

// What was done about the failure before, when its quarantine has ended since: "was quarantined
// 2026-03-01..2026-03-20, lifted as fixed by abc123". Empty: nothing, or it has not ended.
std::string past_quarantine(std::span<const LifecycleStep> steps, const TestId& test,
                            std::string_view signature);

// What the history knows about a failure that is in quarantine.
struct QuarantinedPast {
  std::optional<TimePoint> last_seen;
  std::optional<TimePoint> last_run;  // of the test
  CleanRuns runs;
};

Result<QuarantinedPast> past_of(Store& store, const QuarantineEntry& entry);

LifecycleStep lifecycle_step(LifecycleStep::Kind kind, const QuarantineEntry& entry, TimePoint at);

}  // namespace unflake
