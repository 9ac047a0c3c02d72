#include "cli/transfer_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace unflake {
namespace {

constexpr std::chrono::milliseconds pause{200};

}  // namespace

TransferProgress::TransferProgress(const char* verb)
    : verb_(verb),
      enabled_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + pause) {}

TransferProgress::~TransferProgress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void TransferProgress::show(int64_t runs, int64_t done, int64_t all) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + pause;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{} {} runs", verb_, runs);
  if (all > 0) fmt::print(stderr, ", {} %", std::min<int64_t>(100, done * 100 / all));
  std::fflush(stderr);
}

}  // namespace unflake
