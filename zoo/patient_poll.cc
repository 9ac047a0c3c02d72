// A test that looks again and again, for longer than anything in it could ever be late.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class Replica {
 public:
  ~Replica() {
    if (copier_.joinable()) copier_.join();
  }

  void follow(int version) {
    copier_ = std::thread([this, version] {
      std::this_thread::sleep_for(milliseconds(5));
      version_ = version;
    });
  }

  int version() const { return version_; }

 private:
  std::atomic<int> version_{0};
  std::thread copier_;
};

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = steady_clock::now() + seconds(30);
  while (steady_clock::now() < deadline) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return holds();
}

TEST(Replica, Catches_up) {
  Replica replica;
  replica.follow(7);
  EXPECT_TRUE(eventually([&] { return replica.version() == 7; }));
}

}  // namespace
