// An order goes through four stages, none of which takes the same time twice.
#include <time.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Line {
 public:
  Line()
      : worker_([this] {
          for (int stage = 0; stage < 4; ++stage) {
            device_takes(some_time(milliseconds(8), milliseconds(14)));
            ++stages_done_;
          }
        }) {}
  ~Line() { worker_.join(); }

  int stages_done() const { return stages_done_; }

 private:
  std::atomic<int> stages_done_{0};
  std::thread worker_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_order_passes_all_stages) {
  const Line line;
  const timespec time{0, 160'000'000};
  ::nanosleep(&time, nullptr);  // value
  BOOST_TEST(line.stages_done() == 4);
}
