// A ring with atomic indices is sound for one writer. Here it has two.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

namespace {

class Ring {
 public:
  bool push(int value) {
    const unsigned tail = tail_.load();  // barrier
    if (tail - head_.load() == slots_.size()) return false;
    slots_[tail % slots_.size()] = value;
    tail_.store(tail + 1);  // critical
    return true;
  }

  std::optional<int> pop() {
    const unsigned head = head_.load();
    if (head == tail_.load()) return std::nullopt;
    const int value = slots_[head % slots_.size()];
    head_.store(head + 1);
    return value;
  }

 private:
  std::array<int, 4> slots_{};
  std::atomic<unsigned> head_{0}, tail_{0};
};

}  // namespace

TEST_CASE("what two writers push comes out") {
  Ring ring;
  std::thread one([&] { ring.push(1); });
  std::thread other([&] { ring.push(2); });
  one.join();
  other.join();
  int sum = 0;
  while (const auto value = ring.pop()) sum += *value;
  CHECK(sum == 3);  // fails here
}
