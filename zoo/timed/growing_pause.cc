// Every pause is longer than the last: there is no one number to change.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Station {
 public:
  Station()
      : start_([this] {
          device_takes(milliseconds(70));
          up_ = true;
        }) {}
  ~Station() { start_.join(); }

  bool answers() const { return up_; }

 private:
  std::atomic<bool> up_{false};
  std::thread start_;
};

TEST(Station, Answers_after_some_attempts) {
  const Station station;
  for (int attempt = 1; attempt <= 4; ++attempt)
    std::this_thread::sleep_for(milliseconds(15 * attempt));  // value
  EXPECT_TRUE(station.answers());
}

}  // namespace
