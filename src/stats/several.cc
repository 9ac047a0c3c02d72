#include "stats/several.h"

#include <algorithm>
#include <numeric>

#include "stats/intervals.h"

namespace unflake {

std::vector<double> holm(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> raised(p_values.size());
  double highest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    highest = std::max(highest, std::min(1.0, p_values[order[rank]] * left));
    raised[order[rank]] = highest;
  }
  return raised;
}

double sign_test(int64_t ups, int64_t downs) {
  if (ups + downs <= 0) return 1;
  const auto more = static_cast<double>(std::max(ups, downs));
  const auto fewer = static_cast<double>(std::min(ups, downs));
  return std::min(1.0, 2 * incomplete_beta(more, fewer + 1, 0.5));
}

}  // namespace unflake
