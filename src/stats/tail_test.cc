#include "stats/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace unflake {
namespace {

std::vector<double> sample(int count, const std::function<double(std::mt19937&)>& draw,
                           unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(draw(random));
  return values;
}

// The estimates of many samples, ascending.
std::vector<double> estimates(const std::function<double(std::mt19937&)>& draw, double chance) {
  std::vector<double> all;
  for (unsigned seed = 1; seed <= 101; ++seed)
    all.push_back(tail_quantile(sample(150, draw, seed), chance));
  std::ranges::sort(all);
  return all;
}

double typical(const std::function<double(std::mt19937&)>& draw, double chance) {
  return estimates(draw, chance)[50];
}

TEST(TailQuantile, Of_nothing_is_nothing) {
  EXPECT_EQ(tail_quantile({}, 0.001), 0);
}

TEST(TailQuantile, Of_one_value_is_that_value) {
  EXPECT_EQ(tail_quantile({7}, 0.001), 7);
}

TEST(TailQuantile, Of_equal_values_is_that_value) {
  EXPECT_EQ(tail_quantile(std::vector<double>(200, 3.5), 0.001), 3.5);
}

TEST(TailQuantile, Is_never_below_the_largest_when_that_is_too_frequent) {
  std::vector<double> values(200, 10);
  values.push_back(30);
  EXPECT_GE(tail_quantile(values, 0.001), 30);
}

TEST(TailQuantile, Leaves_out_what_is_as_rare_as_that) {
  std::vector<double> values(2000, 10);
  values.push_back(30);
  EXPECT_LT(tail_quantile(values, 0.01), 30);
}

TEST(TailQuantile, Knows_the_end_of_a_uniform_distribution) {
  const double estimate = typical(
      [](std::mt19937& random) { return std::uniform_real_distribution(20.0, 60.0)(random); },
      0.001);
  EXPECT_NEAR(estimate, 59.96, 2);
}

TEST(TailQuantile, A_slow_path_that_is_taken_now_and_then_is_an_end) {
  const double estimate = typical(
      [](std::mt19937& random) {
        const double noise = std::uniform_real_distribution(0.0, 0.5)(random);
        return (std::bernoulli_distribution(0.06)(random) ? 70 : 25) + noise;
      },
      0.001);
  EXPECT_NEAR(estimate, 70.4, 0.5);
}

TEST(TailQuantile, Reaches_beyond_a_sample_with_an_exponential_tail) {
  const double estimate = typical(
      [](std::mt19937& random) { return 10 + std::exponential_distribution(0.2)(random); }, 0.001);
  EXPECT_NEAR(estimate, 10 + 5 * std::log(1000), 6);
}

TEST(TailQuantile, Is_not_led_far_astray_by_few_excesses) {
  const auto all = estimates(
      [](std::mt19937& random) { return 60 + std::exponential_distribution(1 / 1.5)(random); },
      0.001);
  const double truth = 60 + 1.5 * std::log(1000);
  EXPECT_GT(all[5], 0.94 * truth);
  EXPECT_LT(all[95], 1.05 * truth);
}

TEST(TailQuantile, Is_near_for_a_normal_distribution) {
  const double estimate = typical(
      [](std::mt19937& random) { return std::normal_distribution(50.0, 1.0)(random); }, 0.001);
  EXPECT_NEAR(estimate, 53.09, 0.7);
}

}  // namespace
}  // namespace unflake
