#pragma once

#include <string>
#include <string_view>

namespace unflake {

// Of ASCII letters; other bytes stay.
inline std::string lower_case(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

}  // namespace unflake
