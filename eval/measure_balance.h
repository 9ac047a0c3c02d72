#pragma once

#include "balance_results.h"
#include "timed_truth.h"

namespace unflake::eval {

struct BalanceTools {
  std::string unflake;
  std::string timed;   // the folder of the programs and suites
  std::string config;  // of the project that they make up
};

// All that is measured of one program.
Result<TimedMeasurement> measure_program(const TimedTruth& truth, const BalanceTools& tools,
                                         const BalanceSettings& settings);

// `unflake balance --all` on the suite of a framework, and reruns of what it proposes.
Result<SuiteMeasurement> measure_suite(const std::string& framework, const BalanceTools& tools,
                                       const BalanceSettings& settings);

// Lets the threads and processes that are started from now on run before all others. Whether this
// is allowed.
bool prefer_own_work(bool preferred);

}  // namespace unflake::eval
