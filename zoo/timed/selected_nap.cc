// select() as people slept when sleep() only knew seconds.
#include <doctest/doctest.h>
#include <sys/select.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Spooler {
 public:
  Spooler()
      : printer_([this] {
          device_takes(some_time(milliseconds(30), milliseconds(70)));
          printed_ = true;
        }) {}
  ~Spooler() { printer_.join(); }

  bool has_printed() const { return printed_; }

 private:
  std::atomic<bool> printed_{false};
  std::thread printer_;
};

void nap(long microseconds) {
  timeval time{0, microseconds};
  ::select(0, nullptr, nullptr, nullptr, &time);  // value
}

}  // namespace

TEST_CASE("a page is printed") {
  const Spooler spooler;
  nap(150'000);
  CHECK(spooler.has_printed());
}
