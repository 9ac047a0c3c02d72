// A replica that catches up soon in one run and late in the next.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Replica {
 public:
  ~Replica() { copier_.join(); }

  void follow(int version) {
    copier_ = std::thread([this, version] {
      device_takes(some_time(milliseconds(20), milliseconds(60)));
      version_ = version;
    });
  }

  int version() const { return version_; }

 private:
  std::atomic<int> version_{0};
  std::thread copier_;
};

}  // namespace

TEST_CASE("a replica follows") {
  Replica replica;
  replica.follow(7);
  std::this_thread::sleep_for(milliseconds(150));  // value
  CHECK(replica.version() == 7);
}
