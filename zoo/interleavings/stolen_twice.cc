// A worker takes its newest job without asking, though a thief may be at the same one when it is
// the last.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace {

constexpr int nothing = 0;

class Jobs {
 public:
  void push(int job) {
    const int bottom = bottom_.load();
    jobs_[bottom] = job;
    bottom_.store(bottom + 1);
  }

  int pop() {
    const int bottom = bottom_.load() - 1;
    bottom_.store(bottom);        // step
    const int top = top_.load();  // step
    if (top <= bottom) return jobs_[bottom];
    bottom_.store(top);
    return nothing;
  }

  int steal() {
    int top = top_.load();
    if (top >= bottom_.load()) return nothing;  // barrier
    const int job = jobs_[top];
    return top_.compare_exchange_strong(top, top + 1) ? job : nothing;  // critical
  }

 private:
  std::array<int, 8> jobs_{};
  std::atomic<int> top_{0}, bottom_{0};
};

TEST(Jobs, Are_done_once) {
  Jobs jobs;
  jobs.push(1);
  jobs.push(2);
  int stolen = 0, done = 0;
  std::thread thief([&] { stolen = jobs.steal() + jobs.steal(); });
  std::thread owner([&] { done = jobs.pop() + jobs.pop(); });
  thief.join();
  owner.join();
  EXPECT_EQ(stolen + done, 3);  // fails here
}

}  // namespace
