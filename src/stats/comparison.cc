#include "stats/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "stats/intervals.h"

namespace unflake {
namespace {

// The hits that fall to a when `hits` of all runs are hits and only chance decides which: the
// hypergeometric distribution. Counts are whole numbers that a double holds exactly.
struct Shares {
  double runs_a;
  double runs_b;
  double hits;

  double mean() const { return hits * runs_a / (runs_a + runs_b); }

  double probability(double in_a) const {
    return std::exp(log_choose(runs_a, in_a) + log_choose(runs_b, hits - in_a) -
                    log_choose(runs_a + runs_b, hits));
  }

  // probability(in_a + 1) / probability(in_a), and the other way round.
  double step_up(double in_a) const {
    return (hits - in_a) * (runs_a - in_a) / ((in_a + 1) * (runs_b - hits + in_a + 1));
  }
  double step_down(double in_a) const {
    return in_a * (runs_b - hits + in_a) / ((hits - in_a + 1) * (runs_a - in_a + 1));
  }

  static double log_choose(double n, double k) {
    return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
  }
};

// Away from the mean terms only become smaller, faster and faster, so a sum over a tail ends
// long before its last term, which a step of zero marks.
double tail_sum(const Shares& shares, double first, double direction) {
  constexpr double negligible = 1e-18;
  double term = shares.probability(first);
  double sum = 0;
  for (double in_a = first; term > sum * negligible; in_a += direction) {
    sum += term;
    term *= direction > 0 ? shares.step_up(in_a) : shares.step_down(in_a);
  }
  return std::min(sum, 1.0);
}

}  // namespace

double fisher_more_often(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b) {
  if (runs_a <= 0 || runs_b <= 0) return 1;
  hits_a = std::clamp<int64_t>(hits_a, 0, runs_a);
  hits_b = std::clamp<int64_t>(hits_b, 0, runs_b);
  const Shares shares{static_cast<double>(runs_a), static_cast<double>(runs_b),
                      static_cast<double>(hits_a) + static_cast<double>(hits_b)};
  const auto seen = static_cast<double>(hits_a);
  const double fewest = std::max(0.0, shares.hits - shares.runs_b);
  if (seen <= fewest) return 1;
  return seen > shares.mean() ? tail_sum(shares, seen, 1) : 1 - tail_sum(shares, seen - 1, -1);
}

double fisher_differs(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b) {
  return std::min(1.0, 2 * std::min(fisher_more_often(hits_a, runs_a, hits_b, runs_b),
                                    fisher_more_often(hits_b, runs_b, hits_a, runs_a)));
}

std::optional<int64_t> misses_until_less_often(int64_t hits_a, int64_t runs_a, int64_t hits_b,
                                               int64_t runs_b, double error) {
  const auto shown = [&](int64_t more) {
    return fisher_more_often(hits_a, runs_a, hits_b, runs_b + more) <= error;
  };
  constexpr int64_t most = int64_t{1} << 40;
  int64_t too_few = -1, enough = 1;
  while (enough < most && !shown(enough)) too_few = std::exchange(enough, enough * 2);
  if (enough >= most) return std::nullopt;
  while (enough - too_few > 1) {
    const int64_t middle = too_few + (enough - too_few) / 2;
    (shown(middle) ? enough : too_few) = middle;
  }
  return enough;
}

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

MiddleDifference middle_difference(const std::vector<double>& differences) {
  if (differences.empty()) return {};
  std::vector<double> averages;  // of all pairs, each with itself too
  averages.reserve(differences.size() * (differences.size() + 1) / 2);
  for (size_t i = 0; i < differences.size(); ++i)
    for (size_t j = i; j < differences.size(); ++j)
      averages.push_back((differences[i] + differences[j]) / 2);
  std::ranges::sort(averages);
  const auto n = static_cast<double>(differences.size());
  const double mean = n * (n + 1) / 4, deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  const double rank = std::floor(mean - 1.96 * deviation);
  const size_t cut = differences.size() < 6 || rank < 0 ? 0 : static_cast<size_t>(rank);
  const size_t middle = averages.size() / 2;
  const double estimate =
      averages.size() % 2 == 1 ? averages[middle] : (averages[middle - 1] + averages[middle]) / 2;
  return {estimate, {averages[cut], averages[averages.size() - 1 - cut]}};
}

double sign_test(int64_t ups, int64_t downs) {
  if (ups + downs <= 0) return 1;
  const auto more = static_cast<double>(std::max(ups, downs));
  const auto fewer = static_cast<double>(std::min(ups, downs));
  return std::min(1.0, 2 * incomplete_beta(more, fewer + 1, 0.5));
}

namespace {

constexpr double rounding = 1e-9;

// A rate of exactly 0 or 1 would make one run infinite evidence, and two of them no number at all.
double possible(double rate) {
  return std::clamp(rate, 1e-9, 1 - 1e-9);
}

}  // namespace

// 1 / error and not Wald's (1 - error) / error: then the bound on each error holds strictly.
SequentialTest::SequentialTest(double low, double high, double error, int most)
    : of_hit_(std::log(possible(high) / possible(low))),
      of_miss_(std::log((1 - possible(high)) / (1 - possible(low)))),
      enough_(-std::log(error)),
      most_(most) {}

void SequentialTest::add(bool hit) {
  ++runs_;
  hits_ += hit;
  if (verdict_ != Verdict::undecided) return;
  const double evidence = evidence_for_high();
  const bool clear = std::abs(evidence) >= enough_ - rounding;
  if (clear || runs_ >= most_) verdict_ = evidence > rounding ? Verdict::high : Verdict::low;
}

// The logarithm of how many times likelier the runs are with the high rate than with the low one.
double SequentialTest::evidence_for_high() const {
  return hits_ * of_hit_ + (runs_ - hits_) * of_miss_;
}

}  // namespace unflake
