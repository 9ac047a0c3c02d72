#pragma once

#include <cstdint>
#include <vector>

namespace unflake {

// What a box plot shows, and the mean.
struct Spread {
  int64_t count = 0;
  double min = 0, lower_quartile = 0, median = 0, upper_quartile = 0, max = 0;
  double mean = 0;
};

// Quantiles between two values are interpolated linearly. Of nothing everything is 0.
Spread spread_of(std::vector<double> values);

}  // namespace unflake
