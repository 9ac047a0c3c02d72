#pragma once

#include <string>
#include <vector>

#include "search/repair/points.h"

namespace unflake {

struct VerificationLimits {
  int runs_under_plan = 20;
  int plain_runs = 20;
  int runs_late_after = 5;
  int schedules = 200;
  Duration bound{std::chrono::seconds(10)};  // of a hold
  uint64_t seed = 1;
};

// Whether an order repairs a test, in the running binary: the failure does not come under what made
// it come, nor when nobody is late, nor under sampled schedules; nobody waits in vain, nothing else
// fails, and the test is not slower.
class Verification {
 public:
  Verification(RepairRuns& runs, const VerificationLimits& limits) : runs_(runs), limits_(limits) {}

  // A few runs that most wrong orders do not survive. Empty: it may be one. `is_over` of the runs
  // means that nothing was shown.
  std::string quick_objection(const std::vector<HandOverPoints>& order, int tries);

  struct Verdict {
    EnforcedRuns runs;
    std::string objection;     // empty: it is a repair
    bool is_complete = false;  // else there was no time for all
    bool is_partial = false;   // it only fails, as recorded, when others are late
  };
  Verdict operator()(const std::vector<HandOverPoints>& order);

 private:
  std::string objection_to(const RepairRuns::Run& run, const Plan& plan, size_t own);
  bool make(const Trial& trial, size_t own, int runs, Count& failures, Verdict& verdict);
  void run_under_plan(const std::vector<HandOverPoints>& order, Verdict& verdict);
  void run_late_after(const std::vector<HandOverPoints>& order, Verdict& verdict);
  void run_plain(const std::vector<HandOverPoints>& order, Verdict& verdict);
  void run_schedules(const std::vector<HandOverPoints>& order, Verdict& verdict);

  RepairRuns& runs_;
  const VerificationLimits limits_;
};

}  // namespace unflake
