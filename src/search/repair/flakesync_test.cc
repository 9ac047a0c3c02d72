#include "search/repair/flakesync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/simulated_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using testing::ElementsAre;
using testing::SizeIs;

constexpr DelayLadder ladder;

TEST(FirstFailingDelay, Doubles_until_the_test_fails) {
  std::vector<Duration> tried;
  const auto late = first_failing_delay(3, ladder, [&](const auto& places, Duration delay) {
    EXPECT_THAT(places, ElementsAre(0, 1, 2));
    tried.push_back(delay);
    return delay >= 400ms;
  });
  ASSERT_TRUE(late);
  EXPECT_THAT(tried, ElementsAre(100ms, 200ms, 400ms));
  EXPECT_EQ(late->delay, 400ms);
}

TEST(FirstFailingDelay, Gives_up_at_the_longest_one) {
  int tried = 0;
  EXPECT_FALSE(first_failing_delay(1, ladder, [&](const auto&, Duration) { return ++tried > 10; }));
  EXPECT_EQ(tried, 10);  // 100 ms to 51.2 s
  EXPECT_FALSE(first_failing_delay(0, ladder, [](const auto&, Duration) { return true; }));
}

TEST(MinimiseDelays, Finds_the_one_place) {
  const auto late = minimise_delays(
      {{0, 1, 2, 3, 4, 5, 6}, 100ms}, ladder,
      [](const auto& places, Duration) { return std::ranges::count(places, 5) > 0; });
  EXPECT_THAT(late.places, ElementsAre(5));
  EXPECT_EQ(late.delay, 100ms);
}

TEST(MinimiseDelays, Makes_fewer_places_later_before_it_splits_finer) {
  // The sum counts: 7 places late by 100 ms, or one by 800.
  const auto late = minimise_delays({{0, 1, 2, 3, 4, 5, 6}, 100ms}, ladder,
                                    [](const auto& places, Duration delay) {
                                      return delay * static_cast<int64_t>(places.size()) >= 700ms;
                                    });
  EXPECT_THAT(late.places, SizeIs(1));
  EXPECT_EQ(late.delay, 800ms);
}

TEST(MinimiseDelays, Keeps_what_is_needed_together) {
  const auto late =
      minimise_delays({{0, 1, 2, 3}, 100ms}, ladder, [](const auto& places, Duration) {
        return std::ranges::count(places, 0) > 0 && std::ranges::count(places, 3) > 0;
      });
  EXPECT_THAT(late.places, ElementsAre(0, 1, 2, 3));
}

TEST(LastOfFailingRegion, Is_the_boundary_to_where_lateness_no_longer_matters) {
  const auto in = [](std::set<size_t> failing) {
    return last_of_failing_region(6, [=](size_t i) { return failing.contains(i); });
  };
  EXPECT_EQ(in({1, 2, 3}), 3u);
  EXPECT_EQ(in({0, 4}), 0u);  // the first region
  EXPECT_EQ(in({4, 5}), 5u);
  EXPECT_EQ(in({}), std::nullopt);
}

CallSite site(const std::string& function, int line) {
  CallSite one;
  one.line.file = "work.cc";
  one.line.line = line;
  one.function = function;
  return one;
}

TEST(FindRoot, Goes_up_as_long_as_being_late_makes_the_test_fail) {
  const std::vector<CallSite> stack{site("inner", 5), site("middle", 15), site("outer", 25)};
  const auto root = find_root(stack, 100ms, ladder, [](const CallSite& at, Duration delay) {
    return at.function == "inner" || (at.function == "middle" && delay >= 400ms);
  });
  ASSERT_TRUE(root);
  EXPECT_EQ(root->site.function, "middle");
  EXPECT_EQ(root->delay, 400ms);
}

TEST(BarrierLines, Go_from_each_call_site_up_to_the_begin_of_its_function) {
  const auto lines = barrier_lines({site("check", 12), site("test", 22)}, [](const CallSite& at) {
    return at.function == "check" ? std::vector{10, 11, 12, 13} : std::vector{20, 22, 24};
  });
  std::vector<int> numbers;
  for (const CallSite& line : lines) numbers.push_back(line.line.line);
  EXPECT_THAT(numbers, ElementsAre(12, 11, 10, 22, 20));
}

}  // namespace
}  // namespace unflake
