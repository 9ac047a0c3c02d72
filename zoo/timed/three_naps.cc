// Somebody slept before, in between and after. Only in between there is something to wait for.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Elevator {
 public:
  ~Elevator() {
    if (ride_.joinable()) ride_.join();
  }

  void call(int floor) {
    ride_ = std::thread([this, floor] {
      device_takes(milliseconds(65));
      floor_ = floor;
    });
  }

  int floor() const { return floor_; }

 private:
  std::atomic<int> floor_{0};
  std::thread ride_;
};

}  // namespace

TEST_CASE("an elevator comes when it is called") {
  Elevator elevator;
  std::this_thread::sleep_for(milliseconds(80));  // value
  CHECK(elevator.floor() == 0);
  elevator.call(3);
  std::this_thread::sleep_for(milliseconds(150));  // value
  CHECK(elevator.floor() == 3);
  std::this_thread::sleep_for(milliseconds(60));  // value
  CHECK(elevator.floor() == 3);
}
