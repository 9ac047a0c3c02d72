#include "history/postgres/pg_values.h"

#include <fmt/format.h>

#include "history/postgres/stored_text.h"

namespace unflake {
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
