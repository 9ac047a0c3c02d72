#pragma once

#include <cstdint>

namespace unflake {

struct Interval {
  double low = 0;
  double high = 1;
};

// Where a proportion lies, given `hits` of `trials`. Exact (Clopper and Pearson): covers the truth
// at least as often as `confidence` says, for every number of trials. No trials say nothing: 0..1.
Interval exact_interval(int64_t hits, int64_t trials, double confidence = 0.95);

// Wilson's score interval: close to the exact one, and cheap enough to rank thousands of tests by.
Interval score_interval(int64_t hits, int64_t trials, double confidence = 0.95);

// The highest failure rate that `trials` runs without a failure leave open, one-sided.
double upper_bound_zero_failures(int64_t trials, double confidence = 0.95);

// I_x(a, b): the chance that a Beta(a, b) variable is at most x.
double incomplete_beta(double a, double b, double x);

}  // namespace unflake
