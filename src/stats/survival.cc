#include "stats/survival.h"

#include <algorithm>
#include <cmath>

namespace unflake {
namespace {

constexpr double z_95 = 1.959963984540054;

// The interval of a share, on the scale on which it is most nearly normal and stays within 0..1.
std::pair<double, double> share_interval(const SurvivalStep& step) {
  const double logarithm = std::log(step.share);
  const double width = z_95 * step.error / (step.share * std::abs(logarithm));
  return {std::pow(step.share, std::exp(width)), std::pow(step.share, std::exp(-width))};
}

void find_median(Survival& survival) {
  for (const SurvivalStep& step : survival.steps) {
    if (!survival.median && step.share <= 0.5) survival.median = step.at;
    if (step.share <= 0) break;  // where the last one ended nothing tells how sure that is
    const auto [low, high] = share_interval(step);
    if (!survival.median_low && low <= 0.5) survival.median_low = step.at;
    if (!survival.median_high && high <= 0.5) survival.median_high = step.at;
  }
}

}  // namespace

Survival survival_of(std::vector<Lifetime> lifetimes) {
  std::ranges::sort(lifetimes, {}, &Lifetime::length);
  Survival survival;
  double share = 1, variance = 0;
  for (size_t i = 0; i < lifetimes.size();) {
    const double at = lifetimes[i].length;
    const auto at_risk = static_cast<int64_t>(lifetimes.size() - i);
    int64_t ended = 0, open = 0;
    for (; i < lifetimes.size() && lifetimes[i].length == at; ++i)
      ++(lifetimes[i].ended ? ended : open);
    survival.ended += ended;
    survival.open += open;
    if (ended == 0) continue;
    const auto risk = static_cast<double>(at_risk), ends = static_cast<double>(ended);
    share *= (risk - ends) / risk;
    if (at_risk > ended) variance += ends / (risk * (risk - ends));
    survival.steps.push_back({at, share, share * std::sqrt(variance), at_risk});
  }
  find_median(survival);
  return survival;
}

}  // namespace unflake
