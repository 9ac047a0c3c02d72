// A queue whose reader waits for what it needs, however late that comes.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace {

class OrderQueue {
 public:
  void push(int order) {
    {
      std::lock_guard lock(mutex_);
      orders_.push_back(order);
    }
    changed_.notify_one();
  }

  int pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !orders_.empty(); });
    const int order = orders_.front();
    orders_.pop_front();
    return order;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> orders_;
};

}  // namespace

TEST_CASE("orders come out as they went in") {
  OrderQueue queue;
  std::thread shop([&] {
    for (int order = 1; order <= 5; ++order) queue.push(order);
  });
  std::vector<int> expected(5);
  std::iota(expected.begin(), expected.end(), 1);
  std::vector<int> seen;
  while (seen.size() < expected.size()) seen.push_back(queue.pop());
  shop.join();
  CHECK(seen == expected);
}
