#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/repair.h"
#include "model/repro.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// One of the two builds that a proof compares: without the patch, or with it.
struct ProofSide {
  Executor& executor;
  std::shared_ptr<const Test> test;
  EventStream& events;
  Plan plan;                // of the repro, for this build
  std::string why_no_plan;  // what of it is gone; empty: nothing
  // It failed as recorded.
  std::function<bool(const Outcome&)> is_recorded;
  // Of any failure, with lines as they are with the patch; empty: the outcome's own.
  std::function<std::string(const Outcome&)> signature{};
  std::optional<SiteName> check;   // the line that failed; none: not known, or it was changed
  std::optional<TestOrder> whole;  // all tests of the program
  std::string why_not_whole;
};

struct ProofOptions {
  Repro repro;
  int under_plan = 100;
  int plain = 100;
  int schedules = 1000;
  int loaded = 20;  // at each load
  Duration budget{std::chrono::minutes(10)};
  Duration timeout{std::chrono::minutes(10)};  // of one run
  int cores = 1;
  uint64_t seed = 1;
  // What the patch does to the check that failed: it may be the only repair there is, or the end of
  // the test. Empty: it leaves it alone.
  std::string changed_check;
  // The failure that a new search is for, with its line as it is with the patch.
  Failure wanted;
};

// Under this name the steps of a proof are told, other than those of the searches in it.
inline constexpr const char* proof_strategy = "proof";

// Runs both in the ways in which the failure came or could come, and says what that shows. Ends
// early where the answer is clear.
Result<Proof> prove(ProofSide& before, ProofSide& after, const ProofOptions& options);

}  // namespace unflake
