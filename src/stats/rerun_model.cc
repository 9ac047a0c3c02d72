#include "stats/rerun_model.h"

#include <algorithm>
#include <cmath>

namespace unflake {
namespace {

// What a number of runs may have shown.
struct Shown {
  double nothing = 1;  // all were skipped
  double passes = 0;   // and skips, but no failure
  double failures = 0;
  double both = 0;
};

// These runs, and then those.
Shown then(const Shown& a, const Shown& b) {
  return {a.nothing * b.nothing, a.passes * (b.passes + b.nothing) + a.nothing * b.passes,
          a.failures * (b.failures + b.nothing) + a.nothing * b.failures,
          a.both + (a.nothing + a.passes + a.failures) * b.both + a.passes * b.failures +
              a.failures * b.passes};
}

RunChances within_bounds(const RunChances& chances) {
  const double pass = std::clamp(chances.pass, 0.0, 1.0);
  return {pass, std::clamp(chances.fail, 0.0, 1 - pass)};
}

// The sum of (1 - chance)^x over x from 2 to n - 1.
double sum_of_misses(double chance, uint64_t n) {
  const double terms = static_cast<double>(n - 2);
  if (chance <= 0) return terms;
  if (chance >= 1) return 0;
  const double miss = 1 - chance;
  return -miss * miss * std::expm1(terms * std::log1p(-chance)) / chance;
}

// The least number from `low` to `high` for which `is_enough` holds; `high` when none does.
template <class IsEnough>
uint64_t least_number(uint64_t low, uint64_t high, const IsEnough& is_enough) {
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (is_enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

}  // namespace

RunChances RunChances::of_counts(int64_t passes, int64_t failures, int64_t others) {
  const double all = static_cast<double>(passes + failures + others);
  if (all <= 0) return {};
  return {static_cast<double>(passes) / all, static_cast<double>(failures) / all};
}

double chance_unveiled(const RunChances& given, uint64_t runs) {
  const RunChances chances = within_bounds(given);
  Shown all;
  Shown power{std::max(0.0, 1 - chances.pass - chances.fail), chances.pass, chances.fail, 0};
  for (; runs > 0; runs >>= 1, power = then(power, power))
    if (runs & 1) all = then(all, power);
  return std::min(all.both, 1.0);
}

double expected_runs(const RunChances& given, uint64_t most_runs) {
  if (most_runs < 2) return static_cast<double>(most_runs);
  const RunChances chances = within_bounds(given);
  return 2 + sum_of_misses(chances.fail, most_runs) + sum_of_misses(chances.pass, most_runs) -
         sum_of_misses(std::min(1.0, chances.pass + chances.fail), most_runs);
}

RerunOutlook outlook_of(std::span<const RerunCost> tests, uint64_t most_runs) {
  RerunOutlook all{most_runs, 0, 0, 0};
  for (const RerunCost& test : tests) {
    const double runs = expected_runs(test.chances, most_runs);
    all.detections += chance_unveiled(test.chances, most_runs);
    all.runs += runs;
    all.seconds += runs * test.seconds;
  }
  return all;
}

uint64_t runs_within(std::span<const RerunCost> tests, double seconds, uint64_t bound) {
  const auto is_too_long = [&](uint64_t runs) { return outlook_of(tests, runs).seconds > seconds; };
  if (!is_too_long(bound)) return bound;
  return least_number(0, bound, is_too_long) - 1;
}

uint64_t runs_to_unveil(const RunChances& chances, double confidence, uint64_t bound) {
  return least_number(2, std::max<uint64_t>(bound, 2),
                      [&](uint64_t runs) { return chance_unveiled(chances, runs) >= confidence; });
}

}  // namespace unflake
