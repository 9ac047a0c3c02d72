#pragma once

#include "stats/intervals.h"

namespace unflake {

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
