// The pause is a library's, which others wrote.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"
#include "vendor/retry.h"

namespace {

using std::chrono::milliseconds;

TEST(Retry, Succeeds_in_the_end) {
  std::atomic<bool> up{false};
  std::thread service([&] {
    device_takes(milliseconds(50));
    up = true;
  });
  EXPECT_TRUE(retry::twice([&] { return up.load(); }));  // value
  service.join();
}

}  // namespace
