// A queue that is closed under the lock with which it takes letters: each is refused or delivered.
#include <catch2/catch.hpp>
#include <deque>
#include <mutex>
#include <thread>

namespace {

class Mailbox {
 public:
  bool push(int letter) {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    letters_.push_back(letter);
    return true;
  }

  // How many letters were in it.
  int close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    const int emptied = static_cast<int>(letters_.size());
    letters_.clear();
    return emptied;
  }

 private:
  bool closed_ = false;
  std::mutex mutex_;
  std::deque<int> letters_;
};

}  // namespace

TEST_CASE("a letter is refused or delivered") {
  Mailbox mailbox;
  int taken = 0, delivered = 0;
  std::thread one([&] { taken += mailbox.push(7) ? 1 : 0; });
  std::thread postman([&] { delivered = mailbox.close(); });
  one.join();
  postman.join();
  CHECK(delivered == taken);
}
