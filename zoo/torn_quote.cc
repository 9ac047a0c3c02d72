// A price has two sides that are set one after the other, with nothing but memory in between.
#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class Quote {
 public:
  void move_up(int ticks) {
    bid_ += ticks;
    version_ += 1;
    ask_ += ticks;  // critical
  }

  int version() const { return version_; }
  int spread() const { return ask_ - bid_; }  // barrier

 private:
  std::atomic<int> bid_{99};
  std::atomic<int> ask_{101};
  std::atomic<int> version_{0};
};

bool wait_for_a_change(const Quote& quote) {
  const auto deadline = steady_clock::now() + seconds(20);
  while (quote.version() == 0) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

}  // namespace

int main() {
  Quote quote;
  std::thread market([&] { quote.move_up(5); });
  const bool changed = wait_for_a_change(quote);
  const int spread = quote.spread();
  market.join();
  assert(changed);
  assert(spread == 2);  // fails here
}
