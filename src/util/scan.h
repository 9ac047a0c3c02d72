#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unflake {

// One line after another without a copy of the text; lines end in "\n" or "\r\n".
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) { advance(); }

  bool done() const { return done_; }
  std::string_view line() const { return line_; }
  void advance();

 private:
  std::string_view rest_;
  std::string_view line_;
  bool done_ = false;
};

struct SourceLine {
  std::string_view file;
  int line = 0;
};

// What ends in "file:12", "file:12:34" or "file(12)". Output without a line feed may come before
// it.
std::optional<SourceLine> source_line_at_end(std::string_view text);

// `text` in front of the first `separator`, and what comes after it.
struct Parts {
  std::string_view before;
  std::string_view after;
};
std::optional<Parts> split_at(std::string_view text, std::string_view separator);

bool contains(std::string_view text, std::string_view part);
bool has_line_starting(std::string_view text, std::string_view prefix);

// Removes the prefix if present.
bool consume(std::string_view& text, std::string_view prefix);
bool consume_end(std::string_view& text, std::string_view suffix);

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// What follows the last slash.
std::string_view base_name(std::string_view path);

// Digits at the start of the text.
std::string_view leading_digits(std::string_view text);

}  // namespace unflake
