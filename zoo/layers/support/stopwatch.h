#pragma once

#include <chrono>

namespace base {

class Stopwatch {
 public:
  void restart() { start_ = Clock::now(); }
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace base
