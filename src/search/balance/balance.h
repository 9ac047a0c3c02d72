#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/balance_report.h"
#include "model/events.h"
#include "run/executor.h"
#include "search/balance/balance_runs.h"

namespace unflake {

struct BalanceOptions {
  double tolerance = 0.001;
  double confidence = 0.95;
  double scale = 1;
  std::vector<LoadLevel> loads{LoadLevel::idle, LoadLevel::busy, LoadLevel::one_core};
  std::vector<std::string> sites;  // only these, whatever they are; empty: all that is worth it
  bool fatb = false;               // the paper's search: a fixed number of runs for each value
  int fatb_runs = 100;
  std::optional<Duration> from;  // fatb: the value before the fix, the first step's other end
  int profile_runs = 5;
  Plan plan;  // what every run has: groups, extra functions
  BalanceLimits limits;
};

// Looks for the shortest times that a test can afford. What cannot be searched is in the report,
// with the reason; an error means that no runs could be made.
Result<BalanceReport> balance(Executor& executor, std::shared_ptr<const Test> test,
                              const BalanceOptions& options, EventStream& events);

// The first runs, and what they say about where the test's time goes.
struct TimeProfile {
  std::vector<TimeValue> values;  // of all code, most time spent first
  Count failures;
  bool is_skipped = false;
  Spread run_time;  // in ms, of the runs that passed
  double processor_share = 1;
};
Result<TimeProfile> profile_times(BalanceRuns& runs, const Plan& plan, int wanted);

// Why a value is not worth a search, or cannot have one; empty: it can.
std::string why_not_searched(const TimeValue& value, const TimeProfile& profile,
                             const std::vector<std::string>& sites);

struct ClaimOptions {
  std::string site;
  Duration from{}, to{};
  double confidence = 0.95;
  int most_runs = 320;  // with each of the two
  int profile_runs = 3;
  std::vector<LoadLevel> loads{LoadLevel::idle, LoadLevel::busy, LoadLevel::one_core};
  Plan plan;
  BalanceLimits limits;
};

// Whether a test fails less often with the one value than with the other, in runs that take turns,
// so that whatever else changes meanwhile changes for both.
Result<ClaimReport> check_claim(Executor& executor, std::shared_ptr<const Test> test,
                                const ClaimOptions& options, EventStream& events);

}  // namespace unflake
