#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// Shell-style match over the whole text: `*` any run of characters, `?` any one.
bool glob_match(std::string_view pattern, std::string_view text);

bool is_glob(std::string_view text);

// Up to `most` of `candidates` that look like `wanted`, nearest first; for "did you mean".
std::vector<std::string> nearest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, size_t most);

std::vector<std::string_view> split_lines(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);

// Quoted so that a POSIX shell reads it back as one word; left alone where no quotes are needed.
std::string shell_quote(std::string_view word);
std::string shell_join(const std::vector<std::string>& words);

// What tests print is not trusted: escapes control characters (line feed too, unless kept) and
// bytes that are not UTF-8, so that the result is safe on a terminal and valid in JSON.
enum class LineFeeds { escape, keep };
std::string printable(std::string_view text, LineFeeds line_feeds = LineFeeds::escape);

// Without what terminals obey and people do not read: colours, cursor movements, titles and links
// (the escape sequences of ECMA-48). Of a sequence that does not end, only the escape is removed.
std::string without_escape_sequences(std::string_view text);

// Bytes of the UTF-8 sequence that starts the text, 0 when it is not one. Overlong forms,
// surrogates and values past U+10FFFF are not.
size_t utf8_length(std::string_view text);

// Cut to `most` bytes at a UTF-8 boundary, with an ellipsis where something was cut.
std::string shorten(std::string_view text, size_t most);

void replace_all(std::string& text, std::string_view from, std::string_view to);

// Of ASCII letters; other bytes stay.
inline std::string lower_case(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

// Two small digits for each byte.
inline std::string hexadecimal(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

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

inline constexpr uint64_t fnv1a_start = 0xCBF29CE484222325u;

// Never changes, so stored things can be named by it. Continues from `value`.
constexpr uint64_t fnv1a(std::string_view text, uint64_t value = fnv1a_start) {
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return value;
}

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
