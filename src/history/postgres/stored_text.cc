#include "history/postgres/stored_text.h"

#include <cstdint>
#include <optional>

#include "util/text.h"

namespace unflake {
namespace {

constexpr char substitute = 0x1a;
constexpr std::string_view digits = "0123456789abcdef";

std::optional<char> escaped_byte(std::string_view escape) {
  if (escape.size() < 3) return std::nullopt;
  const size_t high = digits.find(escape[1]), low = digits.find(escape[2]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

std::string to_stored_text(std::string_view text) {
  std::string stored;
  stored.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const bool storable = length > 0 && text[0] != '\0' && text[0] != substitute;
    if (storable) {
      stored.append(text.substr(0, length));
    } else {
      const uint8_t byte = static_cast<uint8_t>(text[0]);
      stored.append({substitute, digits[byte >> 4], digits[byte & 15]});
    }
    text.remove_prefix(storable ? length : 1);
  }
  return stored;
}

std::string from_stored_text(std::string_view stored) {
  std::string text;
  text.reserve(stored.size());
  while (!stored.empty()) {
    const auto escaped = stored[0] == substitute ? escaped_byte(stored) : std::nullopt;
    text.push_back(escaped.value_or(stored[0]));
    stored.remove_prefix(escaped ? 3 : 1);
  }
  return text;
}

}  // namespace unflake
