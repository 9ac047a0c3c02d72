#include "store/postgres/pg_connection.h"

#include <fmt/format.h>
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

namespace {

constexpr int text_format = 0, binary_format = 1;

void append_quoted(std::string_view text, std::string& array) {
  array += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') array += '\\';
    array += c;
  }
  array += '"';
}

}  // namespace

void PgValues::add(double number) {
  values_.push_back({fmt::format("{}", number)});
}

void PgValues::add(std::string_view text) {
  values_.push_back({to_stored_text(text)});
}

void PgValues::add(PgBytes bytes) {
  values_.push_back({.text = std::string(bytes.bytes), .binary = true});
}

void PgValues::add(const std::vector<int64_t>& numbers) {
  values_.push_back({fmt::format("{{{}}}", fmt::join(numbers, ","))});
}

void PgValues::add(const std::vector<double>& numbers) {
  values_.push_back({fmt::format("{{{}}}", fmt::join(numbers, ","))});
}

void PgValues::add(const std::vector<std::string>& texts) {
  std::string array = "{";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    append_quoted(to_stored_text(text), array);
  }
  values_.push_back({array + "}"});
}

std::vector<const char*> PgValues::pointers() const {
  std::vector<const char*> pointers;
  for (const Value& value : values_) pointers.push_back(value.null ? nullptr : value.text.c_str());
  return pointers;
}

std::vector<int> PgValues::lengths() const {
  std::vector<int> lengths;
  for (const Value& value : values_) lengths.push_back(static_cast<int>(value.text.size()));
  return lengths;
}

std::vector<int> PgValues::formats() const {
  std::vector<int> formats;
  for (const Value& value : values_) formats.push_back(value.binary ? binary_format : text_format);
  return formats;
}

}  // namespace unflake
