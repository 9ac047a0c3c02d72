#pragma once

#include "search/balance/balance.h"

namespace unflake {

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
