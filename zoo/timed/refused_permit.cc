// While all permits are taken a guest is turned away, and the book-keeper writes it down.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Door {
 public:
  ~Door() {
    if (bookkeeper_.joinable()) bookkeeper_.join();
  }

  bool admits_a_guest() {
    bookkeeper_ = std::thread([this] {
      device_takes(some_time(milliseconds(15), milliseconds(45)));
      ++written_down_;
    });
    return permits_.try_acquire_for(milliseconds(180));  // value
  }

  int written_down() const { return written_down_; }

 private:
  std::counting_semaphore<8> permits_{0};
  std::atomic<int> written_down_{0};
  std::thread bookkeeper_;
};

}  // namespace

TEST_CASE("a guest without a permit is turned away and written down") {
  Door door;
  CHECK(!door.admits_a_guest());
  CHECK(door.written_down() == 1);
}
