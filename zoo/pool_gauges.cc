// The gauges of a pool are set by its workers, and read after a pause that is thought to be enough.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

struct Gauges {
  std::atomic<int> active_workers{0};
  std::atomic<int> queue_length{0};
};

class MeteredPool {
 public:
  MeteredPool(Gauges& gauges, int workers) : gauges_(gauges) {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  }

  ~MeteredPool() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void submit(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      gauges_.queue_length = static_cast<int>(tasks_.size());
    }
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      gauges_.queue_length = static_cast<int>(tasks_.size());
      lock.unlock();
      execute(task);
      lock.lock();
    }
  }

  void execute(const std::function<void()>& task) {
    ++gauges_.active_workers;  // critical
    task();
    --gauges_.active_workers;
  }

  Gauges& gauges_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

TEST(MeteredPool, Counts_the_workers_that_are_busy) {
  Gauges gauges;
  std::atomic<bool> finish{false};
  MeteredPool pool(gauges, 2);
  for (int i = 0; i < 3; ++i) {
    pool.submit([&] { finish.wait(false); });
  }
  std::this_thread::sleep_for(milliseconds(40));
  const int active = gauges.active_workers;  // barrier
  const int waiting = gauges.queue_length;
  finish = true;
  finish.notify_all();
  EXPECT_EQ(active, 2);  // fails here
  EXPECT_EQ(waiting, 1);
}

}  // namespace
