// Nothing comes over a wire; meanwhile a meter must have counted five beats.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Meter {
 public:
  Meter()
      : thread_([this] {
          for (int beat = 0; beat < 5; ++beat) {
            device_takes(milliseconds(12));
            ++beats_;
          }
        }) {}
  ~Meter() { thread_.join(); }

  int beats() const { return beats_; }

 private:
  std::atomic<int> beats_{0};
  std::thread thread_;
};

TEST(Meter, Beats_while_the_wire_is_silent) {
  int wire[2];
  ASSERT_EQ(::pipe(wire), 0);
  const Meter meter;
  pollfd end{wire[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 200), 0);  // value
  EXPECT_GE(meter.beats(), 5);
  ::close(wire[0]);
  ::close(wire[1]);
}

}  // namespace
