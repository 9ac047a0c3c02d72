#include "stats/rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace unflake {
namespace {

// What the formulas are short for: runs, one by one, until both were seen.
struct Simulated {
  double unveiled = 0;
  double runs = 0;
};

Simulated simulate(const RunChances& chances, int most_runs, int repetitions) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> any(0, 1);
  Simulated mean;
  for (int i = 0; i < repetitions; ++i) {
    bool passed = false, failed = false;
    int runs = 0;
    while (runs < most_runs && !(passed && failed)) {
      const double drawn = any(random);
      ++runs;
      if (drawn < chances.pass)
        passed = true;
      else if (drawn < chances.pass + chances.fail)
        failed = true;
    }
    mean.unveiled += passed && failed;
    mean.runs += runs;
  }
  return {mean.unveiled / repetitions, mean.runs / repetitions};
}

// As the definition has it: sum over x of x * (U(x) - U(x - 1)), and what is left at the end.
double expected_runs_by_definition(const RunChances& chances, int most_runs) {
  double sum = 0;
  for (int x = 2; x <= most_runs; ++x)
    sum += x * (chance_unveiled(chances, x) - chance_unveiled(chances, x - 1));
  return sum + most_runs * (1 - chance_unveiled(chances, most_runs));
}

constexpr RunChances some_chances[] = {{0.9, 0.1}, {0.5, 0.5},  {0.99, 0.01}, {0.02, 0.98},
                                       {0.6, 0.1}, {0.05, 0.1}, {1, 0},       {0, 1},
                                       {0.3, 0.0}, {0, 0}};

TEST(RerunModel, agrees_with_simulated_reruns) {
  constexpr int repetitions = 2000;
  for (const RunChances& chances : some_chances)
    for (const int most_runs : {1, 2, 3, 10, 50}) {
      const Simulated seen = simulate(chances, most_runs, repetitions);
      EXPECT_NEAR(chance_unveiled(chances, most_runs), seen.unveiled, 0.05);
      EXPECT_NEAR(expected_runs(chances, most_runs), seen.runs, 0.05 * most_runs);
    }
}

TEST(RerunModel, agrees_with_the_formula_where_that_is_exact_enough) {
  for (const RunChances& chances : some_chances)
    for (const int n : {0, 1, 2, 5, 170}) {
      const double formula = 1 - std::pow(1 - chances.fail, n) - std::pow(1 - chances.pass, n) +
                             std::pow(1 - chances.pass - chances.fail, n);
      EXPECT_NEAR(chance_unveiled(chances, n), formula, 1e-12);
    }
}

TEST(RerunModel, expects_as_many_runs_as_the_definition_adds_up) {
  for (const RunChances& chances : some_chances)
    for (const int n : {2, 3, 20, 170})
      EXPECT_NEAR(expected_runs(chances, n), expected_runs_by_definition(chances, n), 1e-9 * n);
}

TEST(RerunModel, keeps_its_digits_when_failures_are_as_rare_as_can_be) {
  // Two runs: twice pass * fail. The formula's differences would be lost in rounding.
  EXPECT_NEAR(chance_unveiled({1, 0}, 1'000'000), 0, 0);
  EXPECT_DOUBLE_EQ(chance_unveiled({0.5, 1e-18}, 2), 1e-18);
  EXPECT_DOUBLE_EQ(chance_unveiled({1e-9, 1e-9}, 2), 2e-18);
  EXPECT_NEAR(expected_runs({1 - 1e-15, 1e-15}, 1'000'000), 1'000'000, 1);
}

TEST(RerunModel, takes_what_is_no_chance_for_the_nearest_one) {
  EXPECT_EQ(chance_unveiled({1.5, 0.5}, 10), 0);
  EXPECT_EQ(chance_unveiled({-1, 2}, 10), 0);
  EXPECT_EQ(RunChances::of_counts(0, 0).pass, 1);
}

TEST(RerunModel, adds_up_all_tests) {
  const std::vector<RerunCost> tests{{{0.9, 0.1}, 2}, {{1, 0}, 0.5}, {{0, 1}, 1}};
  const RerunOutlook all = outlook_of(tests, 170);
  EXPECT_NEAR(all.detections, 1, 1e-6);
  EXPECT_NEAR(all.runs, 340 + expected_runs({0.9, 0.1}, 170), 1e-9);
  EXPECT_NEAR(all.seconds, 170 * 1.5 + 2 * expected_runs({0.9, 0.1}, 170), 1e-9);
}

TEST(RerunModel, tells_how_many_runs_a_time_holds) {
  const std::vector<RerunCost> tests{{{1, 0}, 2}, {{1, 0}, 1}};
  EXPECT_EQ(runs_within(tests, 2.9, 1000), 0u);
  EXPECT_EQ(runs_within(tests, 30, 1000), 10u);
  EXPECT_EQ(runs_within(tests, 1e9, 1000), 1000u);
}

TEST(RerunModel, tells_how_many_runs_unveil_a_test) {
  const uint64_t runs = runs_to_unveil({0.98, 0.02}, 0.95, 100'000);
  EXPECT_GE(chance_unveiled({0.98, 0.02}, runs), 0.95);
  EXPECT_LT(chance_unveiled({0.98, 0.02}, runs - 1), 0.95);
  EXPECT_EQ(runs_to_unveil({1, 0}, 0.95, 1000), 1000u);
}

}  // namespace
}  // namespace unflake
