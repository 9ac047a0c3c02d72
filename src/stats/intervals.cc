#include "stats/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace unflake
