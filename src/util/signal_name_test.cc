#include "util/result.h"

#include <gtest/gtest.h>

#include <csignal>

namespace unflake {
namespace {

TEST(SignalName, Is_the_symbol_or_else_the_number) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(64), "signal 64");
  EXPECT_EQ(signal_name(-1), "signal -1");
}

}  // namespace
}  // namespace unflake
