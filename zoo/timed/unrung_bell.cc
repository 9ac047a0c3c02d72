// The test waits to be told, but nobody tells: it is the time-out that ends every wait.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Mailbox {
 public:
  Mailbox() : postman_([this] { deliver(); }) {}
  ~Mailbox() { postman_.join(); }

  int letters_after(milliseconds patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience);  // value
    return letters_;
  }

 private:
  void deliver() {
    device_takes(milliseconds(60));
    const std::lock_guard lock(mutex_);
    ++letters_;  // and no word of it to arrived_
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  int letters_ = 0;
  std::thread postman_;
};

TEST(Mailbox, Gets_a_letter) {
  Mailbox mailbox;
  EXPECT_EQ(mailbox.letters_after(milliseconds(300)), 1);
}

}  // namespace
