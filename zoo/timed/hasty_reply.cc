// A time-out that was chosen on a quiet day: some replies come later.
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Query {
 public:
  Query() : server_([this] { answer(); }) {}
  ~Query() { server_.join(); }

  bool is_answered_within(milliseconds patience) {
    std::unique_lock lock(mutex_);
    return answered_.wait_for(lock, patience, [this] { return done_; });  // value
  }

 private:
  void answer() {
    device_takes(some_time(milliseconds(30), milliseconds(58)));
    const std::lock_guard lock(mutex_);
    done_ = true;
    answered_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable answered_;
  bool done_ = false;
  std::thread server_;
};

}  // namespace

TEST_CASE("a query is answered in time") {
  Query query;
  CHECK(query.is_answered_within(milliseconds(50)));
}
