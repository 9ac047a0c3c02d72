#pragma once

#include <vector>

namespace unflake::eval {

// Of nothing they are 0.
double median(std::vector<double> values);
double mean(const std::vector<double>& values);
// The smallest value that at least this share of all do not exceed.
double quantile(std::vector<double> values, double share);

}  // namespace unflake::eval
