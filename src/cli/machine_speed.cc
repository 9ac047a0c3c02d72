#include "cli/machine_speed.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace unflake {
namespace {

constexpr int rounds = 15;
constexpr int steps = 10'000'000;
constexpr int hand_overs = 1000;

void compute() {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < steps; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  volatile uint64_t result = state;  // so that it is computed at all
  (void)result;
}

void hand_over() {
  std::mutex mutex;
  std::condition_variable changed;
  int turns = 0;
  const auto play = [&](int parity) {
    std::unique_lock lock(mutex);
    for (int i = 0; i < hand_overs; ++i) {
      changed.wait(lock, [&] { return turns % 2 == parity; });
      ++turns;
      changed.notify_one();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

}  // namespace

MachineSpeed measure_machine_speed() {
  using Clock = std::chrono::steady_clock;
  std::vector<Duration> times;
  for (int i = 0; i < rounds; ++i) {
    const auto began = Clock::now();
    compute();
    hand_over();
    times.push_back(std::chrono::duration_cast<Duration>(Clock::now() - began));
  }
  std::ranges::sort(times);
  return {times[rounds / 2], times.front(), times.back(), rounds};
}

}  // namespace unflake
