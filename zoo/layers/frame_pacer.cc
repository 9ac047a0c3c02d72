// Frames are shown at a steady pace.
#include <gtest/gtest.h>

#include <chrono>

#include "support/stopwatch.h"
#include "support/sync.h"

namespace {

class FramePacer {
 public:
  explicit FramePacer(base::Milliseconds interval) : interval_(interval) {}

  // Returns when the next frame is due.
  void wait() {
    const base::Milliseconds passed = since_last_.elapsed();
    if (passed < interval_) base::sleep_for(interval_ - passed);
    since_last_.restart();
    ++frames_;
  }

  int frames() const { return frames_; }

 private:
  const base::Milliseconds interval_;
  base::Stopwatch since_last_;
  int frames_ = 0;
};

TEST(FramePacer, Shows_five_frames_in_fifty_milliseconds) {
  FramePacer pacer(base::Milliseconds(10));
  const base::Stopwatch watch;
  while (pacer.frames() < 5) pacer.wait();
  const base::Milliseconds elapsed = watch.elapsed();
  EXPECT_GE(elapsed, base::Milliseconds(49));
  EXPECT_LT(elapsed, base::Milliseconds(130));  // fails here
}

}  // namespace
