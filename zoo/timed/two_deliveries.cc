// Two parcels, each with a wait of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Courier {
 public:
  ~Courier() {
    if (ride_.joinable()) ride_.join();
  }

  void bring(milliseconds distance) {
    if (ride_.joinable()) ride_.join();
    ride_ = std::thread([this, distance] {
      device_takes(distance);
      ++delivered_;
    });
  }

  int delivered() const { return delivered_; }

 private:
  std::atomic<int> delivered_{0};
  std::thread ride_;
};

TEST(Courier, Delivers_near_and_far) {
  Courier courier;
  courier.bring(milliseconds(35));
  std::this_thread::sleep_for(milliseconds(120));  // value
  ASSERT_EQ(courier.delivered(), 1);
  courier.bring(milliseconds(80));
  std::this_thread::sleep_for(milliseconds(180));  // value
  EXPECT_EQ(courier.delivered(), 2);
}

}  // namespace
