#include "stats/tail.h"

#include <algorithm>
#include <cmath>

namespace unflake {
namespace {

constexpr size_t least_excesses = 10;
// The shapes that a handful of excesses can make believable: from a sharp end to a heavy tail.
constexpr double sharpest = -1;
constexpr double heaviest = 0.5;
// The shape of a few excesses is mostly chance. It is pulled towards a usual one, between that of
// an exponential tail and an end, as if that had been seen in so many more.
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
// is taken now and then, and takes always the same time, looks like a very heavy tail to the fit.
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

}  // namespace unflake
