// A leader is heard of over the network and over a shared disk; it is dead when both are silent.
#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class FailureDetector {
 public:
  void heard_over_network() { network_ = steady_clock::now(); }  // critical
  void heard_over_disk() { disk_ = steady_clock::now(); }

  bool leader_is_alive() const {
    const auto now = steady_clock::now();
    const auto last = std::max(network_.load(), disk_.load());
    return now - last < milliseconds(100);  // barrier
  }

 private:
  std::atomic<steady_clock::time_point> network_{steady_clock::now()};
  std::atomic<steady_clock::time_point> disk_{steady_clock::now()};
};

class Leader {
 public:
  explicit Leader(FailureDetector& follower)
      : network_([this, &follower] { send(follower); }),
        disk_([this, &follower] { touch(follower); }) {}
  ~Leader() {
    stopping_ = true;
    network_.join();
    disk_.join();
  }

 private:
  void send(FailureDetector& follower) {
    while (!stopping_) {
      follower.heard_over_network();
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  void touch(FailureDetector& follower) {
    while (!stopping_) {
      follower.heard_over_disk();
      std::this_thread::sleep_for(milliseconds(15));
    }
  }

  std::atomic<bool> stopping_{false};
  std::thread network_;
  std::thread disk_;
};

}  // namespace

int main() {
  FailureDetector follower;
  const Leader leader(follower);
  for (int tick = 0; tick < 15; ++tick) {
    std::this_thread::sleep_for(milliseconds(10));
    const bool alive = follower.leader_is_alive();
    assert(alive);  // fails here
  }
}
