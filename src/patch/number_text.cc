#include "patch/number_text.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace unflake {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

int base_of(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  if (text[1] == 'x' || text[1] == 'X') return 16;
  if (text[1] == 'b' || text[1] == 'B') return 2;
  return is_digit(text[1]) ? 8 : 10;
}

// Hexadecimal, octal and binary numbers, which have whole values only.
std::optional<double> other_base(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto from = digits.substr(base == 8 ? 1 : 2);
  const auto [end, failed] = std::from_chars(from.data(), from.data() + from.size(), value, base);
  if (failed != std::errc() || end != from.data() + from.size()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> decimal(std::string_view digits) {
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool belongs_to_digits(std::string_view text, size_t at, int base) {
  const char c = text[at];
  if (base == 16 && at > 1) return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  if (base != 10) return is_digit(c) || at == 1;
  const bool exponent = (c == 'e' || c == 'E') && at + 1 < text.size() &&
                        (is_digit(text[at + 1]) || text[at + 1] == '-' || text[at + 1] == '+');
  const bool sign = (c == '-' || c == '+') && (text[at - 1] == 'e' || text[at - 1] == 'E');
  return is_digit(c) || c == '.' || exponent || sign;
}

std::string with_separators(std::string digits) {
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, '\'');
  return digits;
}

}  // namespace

std::optional<NumberText> number_at_start(std::string_view text) {
  if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return std::nullopt;
  const int base = base_of(text);
  NumberText number;
  std::string digits;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '\'') {
      number.has_separators = true;
    } else if (at == 0 || belongs_to_digits(text, at, base)) {
      digits += text[at];
    } else {
      break;
    }
  }
  const size_t suffix = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
    ++at;
  number.suffix = text.substr(suffix, at - suffix);
  number.length = at;
  number.is_floating = base == 10 && digits.find_first_of(".eE") != std::string::npos;
  const auto value = base == 10 ? decimal(digits) : other_base(digits, base);
  if (!value) return std::nullopt;
  number.value = *value;
  return number;
}

std::string in_the_shape_of(const NumberText& shape, double value) {
  if (!shape.is_floating) {
    const std::string digits = fmt::format("{}", std::llround(value));
    return (shape.has_separators ? with_separators(digits) : digits) + shape.suffix;
  }
  std::string digits = fmt::format("{:.12g}", value);  // 0.053, not 0.05299999999999999
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + shape.suffix;
}

}  // namespace unflake
