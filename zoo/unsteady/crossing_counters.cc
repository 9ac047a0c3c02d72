// Two tellers count at the same time, each coin in two steps, and sometimes into the same box.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "support/chance.h"

namespace {

class Box {
 public:
  void count() {
    const int before = coins_.load();                 // barrier
    if (before % 50 == 0) std::this_thread::yield();  // a customer asks something
    coins_.store(before + 1);                         // critical
  }
  int coins() const { return coins_; }

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
  constexpr int coins = 3'000;
  std::array<Box, 2> boxes;
  Box& second_box = boxes[draw(4) == 0 ? 0 : 1];
  Start start;
  const auto count = [&](Box& box) {
    start.wait();
    for (int coin = 0; coin < coins; ++coin) box.count();
  };
  std::thread one([&] { count(boxes[0]); });
  std::thread other([&] { count(second_box); });
  one.join();
  other.join();
  CHECK(boxes[0].coins() + boxes[1].coins() == 2 * coins);  // fails here
}
