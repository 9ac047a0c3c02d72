#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace unflake {

// What a box plot shows, and the mean.
struct Spread {
  int64_t count = 0;
  double min = 0, lower_quartile = 0, median = 0, upper_quartile = 0, max = 0;
  double mean = 0;
};

// Quantiles between two values are interpolated linearly. Without values, everything is 0.
Spread spread_of(std::vector<double> values);

// What the source of a sample exceeds with this chance, even where the sample is too small to show
// something so rare: excesses over a high threshold follow a generalised Pareto distribution, which
// is fitted to the largest fifth by probability-weighted moments (Hosking and Wallis), its shape
// pulled towards a usual one. What ends sharply has no tail. Never less than what was seen when
// that is as rare. 0 for no sample.
double tail_quantile(std::vector<double> sample, double chance);

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
  // Of the median, 95 %; an open side is none.
  std::optional<double> median_low, median_high;
};

// Kaplan and Meier's estimate. What has not ended yet counts for as long as it was watched: leaving
// it out would make the median of the quick ones look like that of all. The interval is Brookmeyer
// and Crowley's on the log-log scale.
Survival survival_of(std::vector<Lifetime> lifetimes);

}  // namespace unflake
