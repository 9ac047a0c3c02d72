// A pool forgets what is still queued when it is shut down.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

class BackgroundQueue {
 public:
  BackgroundQueue() : worker_([this] { work(); }) {}
  ~BackgroundQueue() { shut_down(); }

  void post(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  void shut_down() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;  // barrier
    }
    changed_.notify_one();
    if (worker_.joinable()) worker_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();  // critical
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread worker_;
};

TEST(BackgroundQueue, Runs_everything_that_was_posted) {
  std::atomic<int> done{0};
  BackgroundQueue queue;
  for (int i = 0; i < 4; ++i) queue.post([&] { ++done; });
  std::this_thread::sleep_for(milliseconds(30));
  queue.shut_down();
  EXPECT_EQ(done, 4);  // fails here
}

}  // namespace
