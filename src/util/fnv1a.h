#pragma once

#include <cstdint>
#include <string_view>

namespace unflake {

inline constexpr uint64_t fnv1a_start = 0xCBF29CE484222325u;

// Never changes, so stored things can be named by it. Continues from `value`.
constexpr uint64_t fnv1a(std::string_view text, uint64_t value = fnv1a_start) {
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return value;
}

}  // namespace unflake
