#include "stats/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unflake {
namespace {

double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {.count = static_cast<int64_t>(values.size()),
          .min = values.front(),
          .lower_quartile = quantile(values, 0.25),
          .median = quantile(values, 0.5),
          .upper_quartile = quantile(values, 0.75),
          .max = values.back(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) /
                  static_cast<double>(values.size())};
}

namespace {

constexpr size_t least_excesses = 10;
// The shapes that a handful of excesses can make plausible: from a sharp end to a heavy tail.
constexpr double sharpest = -1;
constexpr double heaviest = 0.5;
// The shape of a few excesses is mostly chance. It is pulled towards a usual one, between that of
// an exponential tail and an end, as if that had been seen in this many more.
constexpr double usual_shape = -0.2;
constexpr double usual_weight = 30;
constexpr double nearly_none = 1e-6;
constexpr size_t enough_for_an_end = 30;
constexpr size_t at_the_end = 5;
constexpr double sharp_end = 0.05;

struct Pareto {
  double shape = 0;
  double scale = 0;
};

// `excesses` ascending.
Pareto fit(const std::vector<double>& excesses) {
  const auto count = static_cast<double>(excesses.size());
  double mean = 0, weighted = 0;
  for (size_t i = 0; i < excesses.size(); ++i) {
    mean += excesses[i] / count;
    weighted += excesses[i] * (count - 1 - static_cast<double>(i)) / (count - 1) / count;
  }
  const double rest = mean - 2 * weighted;
  const double seen = rest > nearly_none * mean ? 2 - mean / rest : heaviest;
  const double shape = (count * seen + usual_weight * usual_shape) / (count + usual_weight);
  const double kept = std::clamp(shape, sharpest, heaviest);
  return {kept, mean * (1 - kept)};
}

double excess_with(const Pareto& tail, double chance) {
  if (std::abs(tail.shape) < nearly_none) return -tail.scale * std::log(chance);
  return tail.scale / tail.shape * (std::pow(chance, -tail.shape) - 1);
}

double seen_with(const std::vector<double>& sorted, double chance) {
  const double allowed = std::floor(chance * static_cast<double>(sorted.size()));
  const auto above = std::min(static_cast<size_t>(allowed), sorted.size() - 1);
  return sorted[sorted.size() - 1 - above];
}

// Several of the largest lie so close together that there is nothing beyond them: a slow path that
// is taken now and then, and always takes the same time, looks like a very heavy tail to the fit.
bool ends_sharply(const std::vector<double>& sorted) {
  const size_t count = sorted.size();
  if (count < enough_for_an_end) return false;
  const double largest = sorted.back();
  return largest - sorted[count - at_the_end] <= sharp_end * (largest - sorted[count / 2]);
}

}  // namespace

double tail_quantile(std::vector<double> sample, double chance) {
  if (sample.empty()) return 0;
  std::ranges::sort(sample);
  const double seen = seen_with(sample, chance);
  const size_t above = std::max(least_excesses, sample.size() / 5);
  if (sample.size() <= above || ends_sharply(sample)) return seen;
  const double threshold = sample[sample.size() - above - 1];
  std::vector<double> excesses;
  for (size_t i = sample.size() - above; i < sample.size(); ++i)
    excesses.push_back(sample[i] - threshold);
  const double share = static_cast<double>(above) / static_cast<double>(sample.size());
  if (chance >= share) return seen;
  return std::max(seen, threshold + excess_with(fit(excesses), chance / share));
}

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
    if (step.share <= 0) break;  // where the last one ended nothing says how sure that is
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
