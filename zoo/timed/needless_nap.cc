// The work is joined anyway; the sleep before it is a leftover.
#include <doctest/doctest.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Summer {
 public:
  explicit Summer(std::vector<int> numbers)
      : worker_([this, numbers = std::move(numbers)] {
          device_takes(milliseconds(20));
          sum_ = std::accumulate(numbers.begin(), numbers.end(), 0);
        }) {}

  int sum() {
    worker_.join();
    return sum_;
  }

 private:
  int sum_ = 0;
  std::thread worker_;
};

}  // namespace

TEST_CASE("numbers are summed up") {
  Summer summer({1, 2, 3});
  std::this_thread::sleep_for(milliseconds(120));  // value
  CHECK(summer.sum() == 6);
}
