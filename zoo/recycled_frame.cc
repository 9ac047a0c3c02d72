// A frame goes back to its pool, which wipes it, while the encoder may still read it.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

class Frame {
 public:
  void fill(int value) {
    std::lock_guard lock(mutex_);
    std::fill(pixels_.begin(), pixels_.end(), value);
  }

  int brightness() const {
    std::lock_guard lock(mutex_);
    return std::accumulate(pixels_.begin(), pixels_.end(), 0) / static_cast<int>(pixels_.size());
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> pixels_ = std::vector<int>(64);
};

class FramePool {
 public:
  Frame& acquire() { return frame_; }
  void release(Frame& frame) { frame.fill(wiped); }

 private:
  static constexpr int wiped = -1;
  Frame frame_;
};

class Encoder {
 public:
  explicit Encoder(const Frame& frame)
      : thread_([this, &frame] { brightness_ = frame.brightness(); }) {}  // critical
  ~Encoder() { finish(); }

  int finish() {
    if (thread_.joinable()) thread_.join();
    return brightness_;
  }

 private:
  int brightness_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a frame is encoded") {
  FramePool pool;
  Frame& frame = pool.acquire();
  frame.fill(128);
  Encoder encoder(frame);
  std::this_thread::sleep_for(milliseconds(30));
  pool.release(frame);             // barrier
  CHECK(encoder.finish() == 128);  // fails here
}
