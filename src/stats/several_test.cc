#include "stats/rates.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unflake {
namespace {

TEST(Holm, Gives_what_the_textbook_gives) {
  const std::vector<double> raised = holm({0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(raised[0], 0.03);
  EXPECT_DOUBLE_EQ(raised[1], 0.06);
  EXPECT_DOUBLE_EQ(raised[2], 0.06);
  EXPECT_DOUBLE_EQ(raised[3], 0.02);
}

TEST(Holm, Leaves_a_single_question_alone_and_never_exceeds_one) {
  EXPECT_DOUBLE_EQ(holm({0.04})[0], 0.04);
  EXPECT_DOUBLE_EQ(holm({0.9, 0.8})[0], 1);
  EXPECT_TRUE(holm({}).empty());
}

TEST(Sign_test, Is_the_tail_of_a_fair_coin_on_both_sides) {
  EXPECT_NEAR(sign_test(5, 0), 2 * std::pow(0.5, 5), 1e-12);
  EXPECT_NEAR(sign_test(0, 5), 2 * std::pow(0.5, 5), 1e-12);
  EXPECT_NEAR(sign_test(8, 2), 2 * (45 + 10 + 1) / 1024.0, 1e-12);
}

TEST(Sign_test, An_even_split_says_nothing) {
  EXPECT_DOUBLE_EQ(sign_test(4, 4), 1);
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1);
}

}  // namespace
}  // namespace unflake
