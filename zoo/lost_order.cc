// A cook who waits for a bell, and not for an order: a bell that rings too early is lost.
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Kitchen {
 public:
  void order(const std::string& dish) {
    std::lock_guard lock(mutex_);
    ordered_ = dish;
    bell_.notify_one();  // barrier
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    bell_.notify_one();
  }

  void cook_one() {
    std::unique_lock lock(mutex_);
    if (!closed_) bell_.wait(lock);  // critical
    if (!closed_) served_ = ordered_;
  }

  std::string served() const {
    std::lock_guard lock(mutex_);
    return served_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable bell_;
  bool closed_ = false;
  std::string ordered_;
  std::string served_;
};

}  // namespace

TEST_CASE("an order is cooked") {
  Kitchen kitchen;
  std::thread cook([&] { kitchen.cook_one(); });
  std::this_thread::sleep_for(milliseconds(40));
  kitchen.order("soup");
  std::this_thread::sleep_for(milliseconds(40));
  kitchen.close();
  cook.join();
  CHECK(kitchen.served() == "soup");  // fails here
}
