#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unflake {

// The first and the last bytes of a stream of any length, in bounded memory.
class BoundedCapture {
 public:
  explicit BoundedCapture(size_t head_limit, size_t tail_limit)
      : head_limit_(head_limit), tail_limit_(tail_limit) {}

  void append(std::string_view bytes);
  uint64_t total() const { return total_; }
  const std::string& head() const { return head_; }
  std::string tail() const;

 private:
  size_t head_limit_;
  size_t tail_limit_;
  std::string head_;
  std::string ring_;
  size_t ring_start_ = 0;
  uint64_t total_ = 0;
};

// The first quarter and the last three of at most `most` bytes, with a line that says how much is
// missing in between: the end is where tests say why they failed.
std::string cut_middle(std::string text, size_t most);

}  // namespace unflake
