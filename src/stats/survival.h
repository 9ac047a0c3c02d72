#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace unflake {

// How long something lasted, or has lasted so far.
struct Lifetime {
  double length = 0;
  bool ended = false;
};

struct SurvivalStep {
  double at = 0;
  double share = 1;  // that lasts longer than this
  double error = 0;  // its standard error, by Greenwood
  int64_t at_risk = 0;
};

struct Survival {
  std::vector<SurvivalStep> steps;  // where something ended
  int64_t ended = 0, open = 0;
  std::optional<double> median;  // none: fewer than half have ended
  // Of the median, 95 %; a side that is open is none.
  std::optional<double> median_low, median_high;
};

// Kaplan and Meier's estimate. What has not ended yet counts for as long as it was watched: leaving
// it out would make the median of the quick ones look like that of all. The interval is Brookmeyer
// and Crowley's on the log-log scale.
Survival survival_of(std::vector<Lifetime> lifetimes);

}  // namespace unflake
