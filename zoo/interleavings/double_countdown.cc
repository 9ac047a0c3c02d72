// A task counts down once: when it ends or when it is cancelled. Both look first, and then both
// count.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

class Latch {
 public:
  explicit Latch(int count) : count_(count) {}

  void count_down() {
    std::lock_guard lock(mutex_);
    --count_;
    reached_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    reached_.wait(lock, [this] { return count_ <= 0; });
  }

  int count() {
    std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  int count_;
};

class Task {
 public:
  explicit Task(Latch& latch) : latch_(latch) {}

  void end() { count_once(); }
  void cancel() { count_once(); }

 private:
  void count_once() {
    if (counted_) return;  // barrier
    counted_ = true;       // critical
    latch_.count_down();
  }

  Latch& latch_;
  std::atomic<bool> counted_{false};
};

TEST(Latch, Is_counted_down_once_by_each_task) {
  Latch latch(2);
  Task download(latch), upload(latch);
  std::thread network([&] { download.end(); });
  std::thread user([&] { download.cancel(); });
  network.join();
  user.join();
  EXPECT_EQ(latch.count(), 1);  // fails here
  upload.end();
  latch.wait();
}

}  // namespace
