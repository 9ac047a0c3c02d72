// A barrier is open as long as nobody has come. Who is quick enough to come again closes it for
// those who have not left yet.
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace {

class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (++arrived_ == parties_) {  // barrier
      arrived_ = 0;
      changed_.notify_all();
    }
    while (arrived_ != 0) changed_.wait(lock);  // critical
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int parties_;
  int arrived_ = 0;
};

// One round's work: a helper does the first part, and another one the rest.
int compute(int round) {
  const int part = std::async(std::launch::async, [=] { return 7 * round; }).get();
  return std::async(std::launch::async, [=] { return part + 1; }).get();
}

}  // namespace

int main() {
  Barrier barrier(2);
  int results[2] = {};
  const auto work = [&](int& result) {
    for (int round = 0; round < 2; ++round) {
      result += compute(round);
      barrier.arrive_and_wait();
    }
  };
  std::thread one([&] { work(results[0]); });
  std::thread other([&] { work(results[1]); });
  one.join();
  other.join();
  return results[0] == results[1] ? 0 : 1;
}
