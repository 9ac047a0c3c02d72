// A ring that says that it holds something before it does. Nothing between the two is a call.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class SampleRing {
 public:
  void push(int sample) {
    const unsigned slot = head_.fetch_add(1) % size;
    slots_[slot].store(sample);  // critical
  }

  bool empty() const { return head_.load() == 0; }
  int first() const { return slots_[0].load(); }

 private:
  static constexpr unsigned size = 8;
  std::atomic<unsigned> head_{0};
  std::array<std::atomic<int>, size> slots_{};
};

bool wait_for_a_sample(const SampleRing& ring) {
  const auto deadline = steady_clock::now() + seconds(20);
  while (ring.empty()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

}  // namespace

TEST_CASE("the first sample can be read") {
  SampleRing ring;
  std::thread sensor([&] { ring.push(42); });
  const bool arrived = wait_for_a_sample(ring);
  const int sample = ring.first();  // barrier
  sensor.join();
  REQUIRE(arrived);
  CHECK(sample == 42);  // fails here
}
