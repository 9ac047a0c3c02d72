#include "stats/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace unflake {
namespace {

// ln of x^a (1-x)^b / B(a, b).
double log_beta_weight(double a, double b, double x) {
  return log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x);
}

double away_from_zero(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

// The continued fraction of I_x(a, b) by Lentz's method. It needs in the order of sqrt(a + b) steps
// where x < (a + 1) / (a + b + 2), and far more elsewhere.
double beta_fraction(double a, double b, double x) {
  const auto max_steps = static_cast<int64_t>(200 + 20 * std::sqrt(a + b));
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int64_t step = 1; step <= max_steps; ++step) {
    const auto m = static_cast<double>(step);
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double change = d * c;
    value *= change;
    if (std::abs(change - 1) < 4 * std::numeric_limits<double>::epsilon()) break;
  }
  return value;
}

// The x with I_x(a, b) = p: Newton's steps, kept inside a bracket that shrinks with each of them.
double inverse_incomplete_beta(double a, double b, double p, double guess) {
  double low = 0, high = 1, x = guess;
  for (int step = 0; step < 200; ++step) {
    if (!(x > low && x < high)) x = low + (high - low) / 2;
    const double error = incomplete_beta(a, b, x) - p;
    (error > 0 ? high : low) = x;
    const double slope = std::exp(log_beta_weight(a, b, x)) / (x * (1 - x));
    const double next = x - error / slope;
    const double enough = std::max(1e-13 * std::min(x, 1 - x), 2.3e-16 * x);
    if (std::abs(next - x) <= enough || high - low <= enough) return x;
    x = next;
  }
  return x;
}

// The z that a normal variable stays within, on both sides, with this probability.
double two_sided_z(double confidence) {
  double low = 0, high = 40;
  for (int step = 0; step < 60; ++step) {
    const double z = (low + high) / 2;
    (std::erfc(z / std::sqrt(2.0)) > 1 - confidence ? low : high) = z;
  }
  return low;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double weight = std::exp(log_beta_weight(a, b, x));
  if (x < (a + 1) / (a + b + 2)) return weight * beta_fraction(a, b, x) / a;
  return 1 - weight * beta_fraction(b, a, 1 - x) / b;
}

Interval exact_interval(int64_t hits, int64_t trials, double confidence) {
  if (trials <= 0) return {};
  hits = std::clamp<int64_t>(hits, 0, trials);
  const double tail = (1 - confidence) / 2;
  const auto k = static_cast<double>(hits);
  const auto n = static_cast<double>(trials);
  const Interval guess = score_interval(hits, trials, confidence);
  Interval interval;
  if (hits > 0) interval.low = inverse_incomplete_beta(k, n - k + 1, tail, guess.low);
  if (hits < trials) interval.high = inverse_incomplete_beta(k + 1, n - k, 1 - tail, guess.high);
  return interval;
}

Interval score_interval(int64_t hits, int64_t trials, double confidence) {
  if (trials <= 0) return {};
  thread_local double last_confidence = 0, z = 0;
  if (confidence != last_confidence) {
    last_confidence = confidence;
    z = two_sided_z(confidence);
  }
  const auto n = static_cast<double>(trials);
  const double rate = std::clamp(static_cast<double>(hits) / n, 0.0, 1.0);
  const double centre = rate + z * z / (2 * n);
  const double reach = z * std::sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {std::max(0.0, (centre - reach) / scale), std::min(1.0, (centre + reach) / scale)};
}

double upper_bound_zero_failures(int64_t trials, double confidence) {
  if (trials <= 0) return 1;
  return -std::expm1(std::log1p(-confidence) / static_cast<double>(trials));
}

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
