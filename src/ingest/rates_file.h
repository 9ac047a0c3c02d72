#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace unflake {

// How often a test failed, and how long it takes, as somebody has measured it.
struct RatedRuns {
  std::string project;
  std::string test;
  int64_t passes = 0, failures = 0;
  double seconds = 0;  // of one run

  double rate() const {
    return passes + failures > 0
               ? static_cast<double>(failures) / static_cast<double>(passes + failures)
               : 0;
  }
};

// A CSV file whose first line names its columns, among them test, passes, failures and seconds, and
// maybe project, in any order. Times below zero are what clocks that were set back leave behind: 0.
Result<std::vector<RatedRuns>> parse_rates(std::string_view csv, const std::string& path);
Result<std::vector<RatedRuns>> read_rates(const std::string& path);

}  // namespace unflake
