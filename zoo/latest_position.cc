// A mailbox holds the latest value only; the test wants to see every one of them.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

class Mailbox {
 public:
  void put(int value) {
    {
      std::lock_guard lock(mutex_);
      value_ = value;  // barrier
    }
    filled_.notify_one();
  }

  int take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return value_.has_value(); });
    const int value = *value_;  // critical
    value_.reset();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<int> value_;
};

class Tracker {
 public:
  explicit Tracker(Mailbox& box) : follower_([this, &box] { follow(box); }) {}
  ~Tracker() { stop(); }

  void stop() {
    if (follower_.joinable()) follower_.join();
  }
  const std::vector<int>& path() const { return path_; }

 private:
  void follow(Mailbox& box) {
    while (path_.empty() || path_.back() != goal) path_.push_back(box.take());
  }

  static constexpr int goal = 30;
  std::vector<int> path_;
  std::thread follower_;
};

TEST(Tracker, Follows_every_position) {
  Mailbox box;
  Tracker tracker(box);
  for (const int position : {10, 20, 30}) {
    std::this_thread::sleep_for(milliseconds(25));
    box.put(position);
  }
  tracker.stop();
  EXPECT_EQ(tracker.path(), (std::vector<int>{10, 20, 30}));  // fails here
}

}  // namespace
