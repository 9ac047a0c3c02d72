// A time-out as it should be: long, and over as soon as the reply is there.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Call {
 public:
  Call() : server_([this] { answer(); }) {}
  ~Call() { server_.join(); }

  std::string reply_within(milliseconds patience) {
    std::unique_lock lock(mutex_);
    replied_.wait_for(lock, patience, [this] { return !reply_.empty(); });  // value
    return reply_;
  }

 private:
  void answer() {
    device_takes(milliseconds(40));
    {
      const std::lock_guard lock(mutex_);
      reply_ = "pong";
    }
    replied_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable replied_;
  std::string reply_;
  std::thread server_;
};

TEST(Call, Is_answered) {
  Call call;
  EXPECT_EQ(call.reply_within(milliseconds(400)), "pong");
}

}  // namespace
