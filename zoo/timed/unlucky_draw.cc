// One draw in ten goes wrong whatever anybody waits for; the wait has a threshold all the same.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Lottery {
 public:
  ~Lottery() {
    if (drawing_.joinable()) drawing_.join();
  }

  void draw() {
    number_ = happens(0.1) ? 0 : 49;  // zero is no number that anybody can win with
    drawing_ = std::thread([this] {
      device_takes(milliseconds(50));
      announced_ = true;
    });
  }

  bool is_announced() const { return announced_; }
  int number() const { return number_; }

 private:
  int number_ = 0;
  std::atomic<bool> announced_{false};
  std::thread drawing_;
};

}  // namespace

TEST_CASE("a number is drawn and announced") {
  Lottery lottery;
  lottery.draw();
  std::this_thread::sleep_for(milliseconds(150));  // value
  REQUIRE(lottery.is_announced());
  CHECK(lottery.number() > 0);
}
