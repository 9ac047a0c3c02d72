// A cache is filled in the background, and the test gives it a fifth of a second.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Cache {
 public:
  Cache() : filler_([this] { fill(); }) {}
  ~Cache() { filler_.join(); }

  int entries() const { return entries_; }

 private:
  void fill() {
    device_takes(milliseconds(50));
    entries_ = 120;
  }

  std::atomic<int> entries_{0};
  std::thread filler_;
};

TEST(Cache, Is_filled_in_the_background) {
  const Cache cache;
  std::this_thread::sleep_for(milliseconds(200));  // value
  EXPECT_EQ(cache.entries(), 120);
}

}  // namespace
