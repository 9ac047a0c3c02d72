// Visitors wait before a concert until its doors open.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

// Open for good once it was opened; costs no lock from then on.
class Gate {
 public:
  void open() {
    open_ = true;
    const std::lock_guard lock(mutex_);
    opened_.notify_all();
  }

  void pass() {
    if (open_) return;
    std::unique_lock lock(mutex_);
    opened_.wait(lock);
  }

 private:
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable opened_;
};

class Concert {
 public:
  void admit(int visitors) {
    for (int i = 0; i < visitors; ++i) visitors_.emplace_back([this] { visit(); });
  }

  void begin() {
    doors_.open();  // barrier
    for (std::thread& visitor : visitors_) visitor.join();
  }

  int audience() const { return audience_; }

 private:
  void visit() {
    doors_.pass();  // critical
    ++audience_;
  }

  Gate doors_;
  std::atomic<int> audience_{0};
  std::vector<std::thread> visitors_;
};

}  // namespace

int main() {
  Concert concert;
  concert.admit(3);
  std::this_thread::sleep_for(milliseconds(40));  // the band tunes
  concert.begin();
  return concert.audience() == 3 ? 0 : 1;
}
