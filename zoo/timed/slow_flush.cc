// A log is flushed by a thread, and every now and then the disk has to turn first.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Log {
 public:
  ~Log() {
    if (flusher_.joinable()) flusher_.join();
  }

  void write(std::string line) {
    flusher_ = std::thread([this, line = std::move(line)] {
      device_takes(happens(0.06) ? milliseconds(70) : milliseconds(25));
      const std::lock_guard lock(mutex_);
      on_disk_.push_back(line);
    });
  }

  std::size_t lines_on_disk() {
    const std::lock_guard lock(mutex_);
    return on_disk_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> on_disk_;
  std::thread flusher_;
};

}  // namespace

TEST_CASE("a line reaches the disk") {
  Log log;
  log.write("started");
  ::usleep(250'000);  // value
  CHECK(log.lines_on_disk() == 1);
}
