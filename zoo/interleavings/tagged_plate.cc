// A lock-free stack whose top carries a number that grows with every change: a plate that was put
// back looks different.
#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <thread>

namespace {

constexpr std::uint32_t none = 99;

struct Top {
  std::uint32_t plate;
  std::uint32_t changes;
};

// Plates 0, 1 and 2, the first one on top.
class Plates {
 public:
  std::uint32_t take() {
    Top top = top_.load();
    while (top.plate != none) {
      const Top after{below_[top.plate].load(), top.changes + 1};
      if (top_.compare_exchange_strong(top, after)) return top.plate;
    }
    return none;
  }

  void put_back(std::uint32_t plate) {
    Top top = top_.load();
    do below_[plate].store(top.plate);
    while (!top_.compare_exchange_strong(top, {plate, top.changes + 1}));
  }

  int count() const {
    int plates = 0;
    for (auto plate = top_.load().plate; plate != none; plate = below_[plate].load()) ++plates;
    return plates;
  }

 private:
  std::atomic<Top> top_{{0, 0}};
  std::array<std::atomic<std::uint32_t>, 3> below_{1, 2, none};
};

}  // namespace

int main() {
  Plates plates;
  std::thread guest([&] { plates.take(); });
  std::thread waiter([&] {
    const std::uint32_t upper = plates.take();
    plates.take();
    plates.put_back(upper);
  });
  guest.join();
  waiter.join();
  assert(plates.count() == 1);
}
