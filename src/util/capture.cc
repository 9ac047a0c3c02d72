#include "util/capture.h"

#include <algorithm>
#include <cstddef>

namespace unflake {

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

}  // namespace unflake
