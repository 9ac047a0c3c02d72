#include "report/columns.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace unflake {
namespace {

struct Range {
  uint32_t first, last;
};

constexpr std::array<Range, 6> zero_width{{{0x300, 0x36F},
                                           {0x200B, 0x200F},
                                           {0x202A, 0x202E},
                                           {0x2060, 0x2064},
                                           {0x20D0, 0x20FF},
                                           {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 11> double_width{{{0x1100, 0x115F},
                                              {0x2E80, 0x303E},
                                              {0x3041, 0xA4CF},
                                              {0xAC00, 0xD7A3},
                                              {0xF900, 0xFAFF},
                                              {0xFE30, 0xFE6F},
                                              {0xFF00, 0xFF60},
                                              {0xFFE0, 0xFFE6},
                                              {0x1F300, 0x1F64F},
                                              {0x1F680, 0x1F9FF},
                                              {0x20000, 0x3FFFD}}};

template <size_t n>
bool in(const std::array<Range, n>& ranges, uint32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

size_t width_of(uint32_t character) {
  if (in(zero_width, character)) return 0;
  return in(double_width, character) ? 2 : 1;
}

// Takes the first character off `text`; a byte that starts none counts as one character.
uint32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t character = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < std::min(length, text.size()); ++i)
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  text.remove_prefix(std::min(length, text.size()));
  return character;
}

// Bytes of the longest start of `text` that takes at most `most` columns.
size_t bytes_within(std::string_view text, size_t most) {
  std::string_view rest = text;
  size_t taken = 0, used = 0;
  while (!rest.empty()) {
    used += width_of(take_character(rest));
    if (used > most) break;
    taken = text.size() - rest.size();
  }
  return taken;
}

}  // namespace

size_t columns(std::string_view text) {
  size_t total = 0;
  while (!text.empty()) total += width_of(take_character(text));
  return total;
}

std::string cut_to_columns(std::string_view text, size_t most) {
  if (columns(text) <= most) return std::string(text);
  if (most == 0) return "";
  return std::string(text.substr(0, bytes_within(text, most - 1))) + "…";
}

}  // namespace unflake
