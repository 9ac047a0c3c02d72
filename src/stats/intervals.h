#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace unflake {

inline double log_gamma(double x) {
  int sign = 0;  // std::lgamma keeps the sign in a global that threads share
  return ::lgamma_r(x, &sign);
}

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

// "3.0 %"; a rate below 1 % gets the decimals that two significant digits take: "0.030 %".
std::string percent(double rate);

// The same rounded up: a promise must not be better than the evidence.
std::string percent_at_most(double rate);

// "0.62..8.5 %"
std::string interval_text(const Interval& interval);

// "3/100 runs failed (3.0 %, 95 % interval 0.62..8.5 %)", or what 100 passes promise. `runs` are
// those that passed or failed.
std::string rate_text(int64_t failures, int64_t runs);

// Runs, and how many of them showed something.
struct Count {
  int hits = 0;
  int runs = 0;

  void add(bool is_hit) {
    ++runs;
    hits += is_hit;
  }
  Count& operator+=(const Count& other) {
    hits += other.hits;
    runs += other.runs;
    return *this;
  }
  int misses() const { return runs - hits; }
  // Nothing of nothing is nothing.
  double rate() const { return runs > 0 ? static_cast<double>(hits) / runs : 0; }
  Interval interval(double confidence = 0.95) const {
    return exact_interval(hits, runs, confidence);
  }
  bool operator==(const Count&) const = default;
};

}  // namespace unflake
