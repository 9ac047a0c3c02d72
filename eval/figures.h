#pragma once

#include <cstddef>
#include <vector>

namespace unflake::eval {

// Of nothing they are 0.
double median(std::vector<double> values);
double mean(const std::vector<double>& values);
// The smallest value that at least this share of all do not exceed.
double quantile(std::vector<double> values, double share);
// Whether `some` are at least this share of `all`.
bool reaches(size_t some, size_t all, double least);

}  // namespace unflake::eval
