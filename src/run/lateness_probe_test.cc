#include "run/conditions.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

namespace unflake {
namespace {

using namespace std::chrono_literals;

TEST(LatenessProbe, Sees_that_nothing_happens_at_once) {
  const auto plain = probe_lateness({}, 5ms);
  ASSERT_TRUE(plain) << to_string(plain.error());
  EXPECT_GT(*plain, 0ms);
}

// A millisecond of computing has to outlast a pause of 9.5 ms when the process may run for half a
// millisecond at a time.
TEST(LatenessProbe, Sees_what_scarcity_does) {
  const auto scarce = probe_lateness({.cpu_share = 0.05}, 300ms);
  ASSERT_TRUE(scarce) << to_string(scarce.error());
  EXPECT_GT(*scarce, 4ms);
}

TEST(LatenessProbe, Leaves_no_process_behind) {
  ASSERT_TRUE(probe_lateness({true, 0.5, 2}, 1ms));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace unflake
