// A worker says itself that it runs. When it is stopped before it has begun, it begins all the same
// and never ends.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

class Worker {
 public:
  ~Worker() { stop(); }

  void start() {
    thread_ = std::thread([this] { work(); });
  }

  void request() {
    std::lock_guard lock(mutex_);
    ++requests_;
    changed_.notify_one();
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      running_ = false;  // barrier
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  int answered() const { return answered_; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    running_ = true;  // critical
    while (running_ || requests_ > 0) {
      if (requests_ > 0) {
        --requests_;
        ++answered_;
      } else {
        changed_.wait(lock);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  int requests_ = 0;
  std::atomic<int> answered_{0};
  std::thread thread_;
};

TEST(Worker, Answers_before_it_stops) {
  Worker worker;
  worker.start();
  for (int client = 0; client < 2; ++client) std::thread([&] { worker.request(); }).join();
  worker.stop();
  EXPECT_EQ(worker.answered(), 2);
}

}  // namespace
