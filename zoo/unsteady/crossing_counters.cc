// Two tellers count into one number at the same time, each coin in two steps.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace {

class Coins {
 public:
  void count() {
    const int before = coins_.load();  // barrier
    coins_.store(before + 1);          // critical
  }
  int total() const { return coins_; }

 private:
  std::atomic<int> coins_{0};
};

// Holds the tellers back until both are there.
class Start {
 public:
  void wait() {
    ready_ += 1;
    while (ready_ < 2) std::this_thread::yield();
  }

 private:
  std::atomic<int> ready_{0};
};

}  // namespace

TEST_CASE("every coin is counted") {
  Coins coins;
  Start start;
  const auto count = [&] {
    start.wait();
    for (int coin = 0; coin < 8; ++coin) coins.count();
  };
  std::thread one(count), other(count);
  one.join();
  other.join();
  CHECK(coins.total() == 16);  // fails here
}
