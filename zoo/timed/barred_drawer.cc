// A drawer stays locked, and whoever tries it long enough is seen by the guard.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Drawer {
 public:
  Drawer() { lock_.lock(); }
  ~Drawer() {
    lock_.unlock();
    guard_.join();
  }

  bool opens() {
    bool opened = false;
    std::thread visitor([&] {
      guard_ = std::thread([this] {
        device_takes(milliseconds(80));
        seen_ = true;
      });
      opened = lock_.try_lock_for(milliseconds(250));  // value
    });
    visitor.join();
    return opened;
  }

  bool was_seen() const { return seen_; }

 private:
  std::timed_mutex lock_;
  std::atomic<bool> seen_{false};
  std::thread guard_;
};

}  // namespace

int main() {
  Drawer drawer;
  const bool opened = drawer.opens();
  if (!opened && drawer.was_seen()) return EXIT_SUCCESS;
  std::fprintf(stderr, "opened: %d, seen: %d\n", opened, drawer.was_seen());
  return EXIT_FAILURE;
}
