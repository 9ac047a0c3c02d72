// A queue takes letters until it is closed and emptied. Who has looked before puts his letter in
// afterwards.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <mutex>
#include <thread>

namespace {

class Mailbox {
 public:
  bool push(int letter) {
    if (closed_) return false;  // step
    std::lock_guard lock(mutex_);
    letters_.push_back(letter);  // critical
    return true;
  }

  // How many letters were in it.
  int close() {
    closed_ = true;  // step
    std::lock_guard lock(mutex_);
    const int emptied = static_cast<int>(letters_.size());  // barrier
    letters_.clear();
    return emptied;
  }

 private:
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::deque<int> letters_;
};

}  // namespace

TEST_CASE("every letter that was taken is delivered") {
  Mailbox mailbox;
  int taken = 0, delivered = 0;
  std::thread sender([&] { taken = mailbox.push(7) ? 1 : 0; });
  std::thread postman([&] { delivered = mailbox.close(); });
  sender.join();
  postman.join();
  CHECK(delivered == taken);  // fails here
}
