// The last owner frees what is owned: each takes one away from the count, and then looks whether it
// is nought.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace {

class Shared {
 public:
  void release() {
    owners_.fetch_sub(1);                          // barrier
    if (owners_.load() == 0) freed_.fetch_add(1);  // critical
  }

  int freed() const { return freed_; }

 private:
  std::atomic<int> owners_{2};
  std::atomic<int> freed_{0};
};

TEST(Shared, Is_freed_once) {
  Shared shared;
  std::thread one([&] { shared.release(); });
  std::thread other([&] { shared.release(); });
  one.join();
  other.join();
  EXPECT_EQ(shared.freed(), 1);  // fails here
}

}  // namespace
