// A lock-free stack compares its top and swaps it: a plate that was taken and put back in between
// looks as if it had never been away.
#include <array>
#include <atomic>
#include <cassert>
#include <thread>

namespace {

constexpr int none = -1;

// Plates 0, 1 and 2, the first one on top.
class Plates {
 public:
  int take() {
    int top = top_.load();
    while (top != none) {
      const int below = below_[top].load();                      // step
      if (top_.compare_exchange_strong(top, below)) return top;  // barrier
    }
    return none;
  }

  void put_back(int plate) {
    int top = top_.load();
    do below_[plate].store(top);
    while (!top_.compare_exchange_strong(top, plate));  // critical
  }

  int count() const {
    int plates = 0;
    for (int plate = top_.load(); plate != none; plate = below_[plate].load()) ++plates;
    return plates;
  }

 private:
  std::atomic<int> top_{0};
  std::array<std::atomic<int>, 3> below_{1, 2, none};
};

}  // namespace

int main() {
  Plates plates;
  std::thread guest([&] { plates.take(); });
  std::thread waiter([&] {
    const int upper = plates.take();
    plates.take();  // step
    plates.put_back(upper);
  });
  guest.join();
  waiter.join();
  assert(plates.count() == 1);  // fails here
}
