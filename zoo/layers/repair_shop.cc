// A workshop with one bench and one tool drawer, used for repairs and counted now and then.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;

// 0: free, 1: taken, 2: taken, and somebody waits.
class FastMutex {
 public:
  void lock() {
    int state = 0;
    if (state_.compare_exchange_strong(state, 1)) return;
    if (state != 2) state = state_.exchange(2);
    while (state != 0) {
      futex(FUTEX_WAIT_PRIVATE, 2);
      state = state_.exchange(2);
    }
  }

  void unlock() {
    if (state_.exchange(0) == 2) futex(FUTEX_WAKE_PRIVATE, 1);
  }

 private:
  void futex(int operation, int value) {
    ::syscall(SYS_futex, &state_, operation, value, nullptr, nullptr, 0);
  }

  std::atomic<int> state_{0};
};

class Holding {
 public:
  explicit Holding(FastMutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding() { mutex_.unlock(); }

 private:
  FastMutex& mutex_;
};

class Workshop {
 public:
  void repair() {
    const Holding bench(bench_);
    unscrew();
    const Holding drawer(drawer_);  // critical
    ++repaired_;
    --screws_;
  }

  int count_screws() {
    const Holding drawer(drawer_);  // barrier
    const int in_drawer = screws_;
    const Holding bench(bench_);
    return in_drawer + on_bench_;
  }

  int repaired() {
    const Holding bench(bench_);
    return repaired_;
  }

 private:
  void unscrew() {
    ++on_bench_;
    std::this_thread::sleep_for(milliseconds(5));
  }

  FastMutex bench_, drawer_;
  int on_bench_ = 0, repaired_ = 0, screws_ = 20;
};

}  // namespace

int main() {
  Workshop workshop;
  int screws = 0;
  std::thread mechanic([&] { workshop.repair(); });
  std::thread owner([&] {
    std::this_thread::sleep_for(milliseconds(60));  // comes in later
    screws = workshop.count_screws();
  });
  mechanic.join();
  owner.join();
  assert(screws == 20);
  assert(workshop.repaired() == 1);
}
