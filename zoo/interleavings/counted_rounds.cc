// A barrier that counts its rounds: who waits, waits for the end of the round in which he came.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    const int round = round_;
    if (++arrived_ == parties_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    while (round_ == round) changed_.wait(lock);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int parties_;
  int arrived_ = 0;
  int round_ = 0;
};

TEST(Barrier, Can_be_used_again_at_once) {
  Barrier barrier(3);
  int steps[3] = {};
  bool together = true;
  std::mutex mutex;
  const auto walk = [&](int who) {
    for (int round = 1; round <= 3; ++round) {
      steps[who] = round;
      barrier.arrive_and_wait();
      {
        std::lock_guard lock(mutex);
        for (const int step : steps) together = together && step == round;
      }
      barrier.arrive_and_wait();
    }
  };
  std::thread one(walk, 0), two(walk, 1), three(walk, 2);
  one.join();
  two.join();
  three.join();
  EXPECT_TRUE(together);
}

}  // namespace
