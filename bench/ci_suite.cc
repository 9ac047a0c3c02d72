// Two hundred tests that take as long as a small test of a real suite does.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace {

class CiSuite : public testing::TestWithParam<int> {};

TEST_P(CiSuite, Takes_a_while) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

INSTANTIATE_TEST_SUITE_P(Waits, CiSuite, testing::Range(0, 200));

}  // namespace
