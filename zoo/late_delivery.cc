// A test that sleeps for as long as the work usually takes, and then looks.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class PostOffice {
 public:
  ~PostOffice() {
    if (carrier_.joinable()) carrier_.join();
  }

  void send(std::string letter) {
    carrier_ = std::thread([this, letter = std::move(letter)] {
      std::this_thread::sleep_for(time_on_the_road());
      letters_.fetch_add(1);  // critical
    });
  }

  int delivered() const { return letters_.load(); }

 private:
  // Like a remote service: mostly quick, and now and then not.
  static microseconds time_on_the_road() {
    std::random_device dice;
    return milliseconds(1) + microseconds(dice() % 12'000);
  }

  std::thread carrier_;
  std::atomic<int> letters_{0};
};

TEST(PostOffice, Delivers_a_letter) {
  PostOffice office;
  office.send("hello");
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(office.delivered(), 1);  // barrier, fails here
}

TEST(PostOffice, Starts_with_an_empty_box) {
  EXPECT_EQ(PostOffice().delivered(), 0);
}

}  // namespace
