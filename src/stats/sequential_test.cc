#include "stats/rates.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <utility>

namespace unflake {
namespace {

using Verdict = SequentialTest::Verdict;

SequentialTest after(SequentialTest test, std::string_view runs) {
  for (const char run : runs) test.add(run == 'x');
  return test;
}

struct SimulatedTests {
  double wrong = 0;  // the share of tests that did not end with the expected verdict
  double runs = 0;   // of a test, on average
};

SimulatedTests simulate(const SequentialTest& fresh, double rate, Verdict expected) {
  constexpr int tests = 20'000;
  std::mt19937_64 random(20250611);
  std::bernoulli_distribution hit(rate);
  SimulatedTests sums;
  for (int i = 0; i < tests; ++i) {
    SequentialTest test = fresh;
    while (test.verdict() == Verdict::undecided) test.add(hit(random));
    sums.wrong += test.verdict() != expected;
    sums.runs += test.runs();
  }
  return {sums.wrong / tests, sums.runs / tests};
}

TEST(SequentialTest, Needs_four_runs_when_all_of_them_agree) {
  const SequentialTest fresh(0.3, 0.7, 0.05);
  EXPECT_EQ(after(fresh, "xxx").verdict(), Verdict::undecided);
  EXPECT_EQ(after(fresh, "xxxx").verdict(), Verdict::high);
  EXPECT_EQ(after(fresh, "...").verdict(), Verdict::undecided);
  EXPECT_EQ(after(fresh, "....").verdict(), Verdict::low);
}

TEST(SequentialTest, Needs_a_lead_of_four_when_they_do_not) {
  const SequentialTest fresh(0.3, 0.7, 0.05);
  EXPECT_EQ(after(fresh, "x.xx.xx").verdict(), Verdict::undecided);
  EXPECT_EQ(after(fresh, "x.xx.xxx").verdict(), Verdict::high);
}

TEST(SequentialTest, Counts_what_it_was_told) {
  const SequentialTest test = after(SequentialTest(0.3, 0.7, 0.05), "x.x..");
  EXPECT_EQ(test.hits(), 2);
  EXPECT_EQ(test.runs(), 5);
}

TEST(SequentialTest, Keeps_its_first_verdict) {
  const SequentialTest test = after(SequentialTest(0.3, 0.7, 0.05), "xxxx............");
  EXPECT_EQ(test.verdict(), Verdict::high);
  EXPECT_EQ(test.runs(), 16);
}

TEST(SequentialTest, Decides_by_majority_when_it_may_make_no_more_runs) {
  const SequentialTest fresh(0.3, 0.7, 0.05, 7);
  EXPECT_EQ(after(fresh, "x.x.x.").verdict(), Verdict::undecided);
  EXPECT_EQ(after(fresh, "x.x.x.x").verdict(), Verdict::high);
  EXPECT_EQ(after(fresh, "x.x.x..").verdict(), Verdict::low);
}

TEST(SequentialTest, Takes_a_draw_for_the_low_rate) {
  EXPECT_EQ(after(SequentialTest(0.3, 0.7, 0.05, 20), "x.x.x.x.x.x.x.x.x.x.").verdict(),
            Verdict::low);
}

TEST(SequentialTest, Weighs_the_last_runs_by_its_rates_when_these_are_not_even) {
  const SequentialTest fresh(0.1, 0.3, 0.001, 10);
  EXPECT_EQ(after(fresh, "xxx.......").verdict(), Verdict::high);
  EXPECT_EQ(after(fresh, "x.........").verdict(), Verdict::low);
}

TEST(SequentialTest, Takes_rates_of_zero_and_one) {
  EXPECT_EQ(after(SequentialTest(0, 1, 0.05), "x").verdict(), Verdict::high);
  EXPECT_EQ(after(SequentialTest(0, 1, 0.05), ".").verdict(), Verdict::low);
  EXPECT_EQ(after(SequentialTest(0, 1, 0.05), ".x").verdict(), Verdict::low);
}

// 20,000 simulated tests: a share of 0.05 has a standard deviation of 0.0015.
TEST(SequentialTest, Errs_no_more_often_than_it_promises) {
  for (const double error : {0.05, 0.01}) {
    for (const auto& [low, high] : {std::pair{0.3, 0.7}, {0.1, 0.5}, {0.02, 0.2}}) {
      const SequentialTest fresh(low, high, error);
      EXPECT_LE(simulate(fresh, low, Verdict::low).wrong, error + 0.005) << low;
      EXPECT_LE(simulate(fresh, high, Verdict::high).wrong, error + 0.005) << high;
    }
  }
}

TEST(SequentialTest, Errs_less_when_the_rate_is_clearer) {
  const SequentialTest fresh(0.3, 0.7, 0.05);
  EXPECT_LE(simulate(fresh, 0.1, Verdict::low).wrong, 0.001);
  EXPECT_LE(simulate(fresh, 0.9, Verdict::high).wrong, 0.001);
}

TEST(SequentialTest, Needs_few_runs) {
  const SequentialTest fresh(0.3, 0.7, 0.05);
  EXPECT_EQ(simulate(fresh, 1.0, Verdict::high).runs, 4.0);
  EXPECT_LT(simulate(fresh, 0.9, Verdict::high).runs, 5.5);
  EXPECT_LT(simulate(fresh, 0.7, Verdict::high).runs, 10.0);
  EXPECT_LT(simulate(fresh, 0.5, Verdict::high).runs, 17.0);
}

TEST(SequentialTest, Errs_little_more_when_it_may_make_no_more_than_fifteen_runs) {
  const SequentialTest fresh(0.3, 0.7, 0.05, 15);
  EXPECT_LE(simulate(fresh, 0.3, Verdict::low).wrong, 0.07);
  EXPECT_LE(simulate(fresh, 0.7, Verdict::high).wrong, 0.07);
}

}  // namespace
}  // namespace unflake
