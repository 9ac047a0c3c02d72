// Two waits that share the time until a job is done: what one gives up the other must add.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Upload {
 public:
  Upload()
      : line_([this] {
          device_takes(milliseconds(90));
          done_ = true;
        }) {}
  ~Upload() { line_.join(); }

  void rename(int number) { name_ = number; }
  int name() const { return name_; }
  bool is_done() const { return done_; }

 private:
  int name_ = 0;
  std::atomic<bool> done_{false};
  std::thread line_;
};

}  // namespace

TEST_CASE("an upload can be renamed while it is under way") {
  Upload upload;
  std::this_thread::sleep_for(milliseconds(100));  // value
  upload.rename(2);
  std::this_thread::sleep_for(milliseconds(100));  // value
  CHECK(upload.name() == 2);
  CHECK(upload.is_done());
}
