// A timer is set, read, and when it has rung the cake must be done.
#include <gtest/gtest.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Timer {
 public:
  ~Timer() { ::close(descriptor_); }

  void set(milliseconds time) {
    const itimerspec once{{0, 0}, {0, std::chrono::nanoseconds(time).count()}};
    ::timerfd_settime(descriptor_, 0, &once, nullptr);  // value
  }

  uint64_t rings() const {
    uint64_t rings = 0;
    return ::read(descriptor_, &rings, sizeof rings) == sizeof rings ? rings : 0;
  }

 private:
  int descriptor_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
};

TEST(Timer, Rings_when_the_cake_is_done) {
  std::atomic<bool> is_done{false};
  Timer timer;
  std::thread oven([&] {
    device_takes(milliseconds(45));
    is_done = true;
  });
  timer.set(milliseconds(120));
  EXPECT_EQ(timer.rings(), 1u);
  EXPECT_TRUE(is_done);
  oven.join();
}

}  // namespace
