#include "search/reproduce/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Numbers = std::vector<size_t>;

StillFails needs(const Numbers& needed) {
  return [needed](const Numbers& some) { return std::ranges::includes(some, needed); };
}

bool is_1_minimal(const Numbers& left, const StillFails& fails) {
  for (size_t i = 0; i < left.size() && left.size() > 1; ++i) {
    Numbers smaller = left;
    smaller.erase(smaller.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails(smaller)) return false;
  }
  return true;
}

TEST(Minimise, Finds_the_one_that_matters) {
  for (size_t n = 1; n < 40; ++n)
    for (size_t culprit = 0; culprit < n; ++culprit)
      EXPECT_THAT(minimise(n, needs({culprit})), ElementsAre(culprit));
}

TEST(Minimise, Finds_all_that_are_needed_together) {
  EXPECT_THAT(minimise(100, needs({3, 50, 99})), ElementsAre(3, 50, 99));
  EXPECT_THAT(minimise(4, needs({0, 1, 2, 3})), ElementsAre(0, 1, 2, 3));
}

TEST(Minimise, Finds_one_of_several_causes) {
  const auto fails = [](const Numbers& some) { return needs({7})(some) || needs({2, 30})(some); };
  EXPECT_TRUE(is_1_minimal(minimise(40, fails), fails));
}

TEST(Minimise, Of_nothing_is_nothing) {
  EXPECT_THAT(minimise(0, needs({})), IsEmpty());
}

TEST(Minimise, Needs_few_questions_for_one_culprit) {
  int asked = 0;
  minimise(1024, [&](const Numbers& some) {
    ++asked;
    return needs({600})(some);
  });
  EXPECT_LE(asked, 2 * 10);
}

TEST(Minimise, Never_asks_the_same_twice_nor_for_nothing) {
  std::set<Numbers> asked;
  minimise(30, [&](const Numbers& some) {
    EXPECT_FALSE(some.empty());
    EXPECT_TRUE(asked.insert(some).second);
    return needs({4, 5, 29})(some);
  });
}

TEST(Minimise, Ends_with_a_1_minimal_set_when_more_can_be_less) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto fails = [seed](const Numbers& some) {
      uint64_t mixed = seed;
      for (const size_t number : some) mixed = (mixed ^ number) * 0x9e3779b97f4a7c15u;
      return some.size() == 12 || mixed >> 62 == 0;
    };
    const Numbers left = minimise(12, fails);
    EXPECT_FALSE(left.empty());
    EXPECT_TRUE(is_1_minimal(left, fails)) << seed;
  }
}

TEST(Minimise, Ends_when_answers_are_random) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    int asked = 0;
    minimise(16, [&](const Numbers&) { return ++asked, random() % 3 == 0; });
    EXPECT_LE(asked, 16 * 16 + 3 * 16);
  }
}

}  // namespace
}  // namespace unflake
