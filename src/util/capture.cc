#include "util/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace unflake {
namespace {

constexpr size_t gap_line_room = 64;  // of what cut_middle() puts into the gap, at most

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

void BoundedCapture::append(std::string_view bytes) {
  total_ += bytes.size();
  const size_t to_head = std::min(bytes.size(), head_limit_ - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (bytes.size() > tail_limit_) bytes.remove_prefix(bytes.size() - tail_limit_);

  const size_t room = tail_limit_ - ring_.size();
  const size_t grow = std::min(room, bytes.size());
  ring_.append(bytes.substr(0, grow));
  bytes.remove_prefix(grow);
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), ring_.size() - ring_start_);
    std::copy_n(bytes.begin(), piece, ring_.begin() + static_cast<ptrdiff_t>(ring_start_));
    ring_start_ = (ring_start_ + piece) % ring_.size();
    bytes.remove_prefix(piece);
  }
}

std::string BoundedCapture::tail() const {
  return ring_.substr(ring_start_) + ring_.substr(0, ring_start_);
}

// The line in the gap is part of `most`: what has been cut is not cut again.
std::string cut_middle(std::string text, size_t most) {
  if (text.size() <= most) return text;
  const size_t kept = most - std::min(most, gap_line_room);
  size_t head = kept / 4;
  size_t tail = text.size() - (kept - head);
  // A character has at most three such bytes; more of them are not text.
  for (int i = 0; i < 3 && head > 0 && is_continuation(text[head]); ++i) --head;
  for (int i = 0; i < 3 && tail < text.size() && is_continuation(text[tail]); ++i) ++tail;
  return text.replace(head, tail - head,
                      fmt::format("\n[... {} bytes not shown ...]\n", tail - head));
}

}  // namespace unflake
