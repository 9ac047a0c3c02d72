#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace unflake {

// "1234567 runs, 41 %" on the last line of a terminal, a few times a second; nothing elsewhere.
class TransferProgress {
 public:
  explicit TransferProgress(const char* verb);
  ~TransferProgress();
  TransferProgress(const TransferProgress&) = delete;
  TransferProgress& operator=(const TransferProgress&) = delete;

  // `all`: how much there is, when that is known.
  void show(int64_t runs, int64_t done = 0, int64_t all = 0);

 private:
  const char* verb_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace unflake
