#pragma once

#include <vector>

namespace unflake {

// What the source of a sample exceeds with this chance, also where the sample is too small to show
// something so rare: excesses over a high threshold follow a generalised Pareto distribution, which
// is fitted to the largest fifth by probability-weighted moments (Hosking and Wallis), its shape
// pulled towards a usual one. What ends sharply has no tail. Never less than what was seen when
// that is as rare. 0 for no sample.
double tail_quantile(std::vector<double> sample, double chance);

}  // namespace unflake
