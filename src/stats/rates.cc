#include "stats/rates.h"

#include <fmt/format.h>

#include <cmath>

namespace unflake {
namespace {

int decimals_of(double percents) {
  if (!(percents > 0 && percents < 1)) return 1;
  return 1 - static_cast<int>(std::floor(std::log10(percents)));
}

std::string percents_of(double rate) {
  return fmt::format("{:.{}f}", rate * 100, decimals_of(rate * 100));
}

std::string passes_text(int64_t runs) {
  return fmt::format("{}/{} runs (failure rate below {} at 95 % confidence)", runs, runs,
                     percent_at_most(upper_bound_zero_failures(runs)));
}

}  // namespace

std::string percent(double rate) {
  return percents_of(rate) + " %";
}

std::string percent_at_most(double rate) {
  const int decimals = decimals_of(rate * 100);
  const double scale = std::pow(10, decimals);
  return fmt::format("{:.{}f} %", std::ceil(rate * 100 * scale) / scale, decimals);
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{}..{} %", percents_of(interval.low), percents_of(interval.high));
}

std::string rate_text(int64_t failures, int64_t runs) {
  if (runs <= 0) return "no run passed or failed";
  if (failures == 0) return passes_text(runs);
  const double rate = static_cast<double>(failures) / static_cast<double>(runs);
  return fmt::format("{}/{} runs failed ({}, 95 % interval {})", failures, runs, percent(rate),
                     interval_text(exact_interval(failures, runs)));
}

}  // namespace unflake
