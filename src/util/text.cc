#include "util/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <numeric>

namespace unflake {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) ==
                  std::tolower(static_cast<unsigned char>(b));
         }) != text.end();
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 &&
         static_cast<unsigned char>(character[1]) < 0xA0;  // C1: terminals obey these too
}

bool is_between(std::string_view text, size_t at, char low, char high) {
  return at < text.size() && text[at] >= low && text[at] <= high;
}

size_t skip_between(std::string_view text, size_t at, char low, char high) {
  while (is_between(text, at, low, high)) ++at;
  return at;
}

// ESC [ 1;31 m
size_t control_sequence_length(std::string_view text) {
  const size_t parameters_end = skip_between(text, 2, '0', '?');
  const size_t end = skip_between(text, parameters_end, ' ', '/');
  return is_between(text, end, '@', '~') ? end + 1 : 1;
}

// ESC ] 0;title BEL, or ESC \ at the end. One that reaches the end of the line was cut short, and
// must not swallow the lines below.
size_t control_string_length(std::string_view text) {
  size_t end = 2;
  while (end < text.size() && static_cast<unsigned char>(text[end]) >= ' ') ++end;
  if (text.substr(end).starts_with('\a')) return end + 1;
  return text.substr(end).starts_with("\x1b\\") ? end + 2 : 1;
}

// ESC ( B, ESC c
size_t short_sequence_length(std::string_view text) {
  const size_t end = skip_between(text, 1, ' ', '/');
  return is_between(text, end, '0', '~') ? end + 1 : 1;
}

size_t escape_sequence_length(std::string_view text) {
  constexpr std::string_view openers_of_strings = "]PX^_";
  if (text.starts_with("\x1b[")) return control_sequence_length(text);
  if (text.size() > 1 && openers_of_strings.find(text[1]) != std::string_view::npos)
    return control_string_length(text);
  return short_sequence_length(text);
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                     ? 1
                        : first >= 0xC2 && first <= 0xDF ? 2
                        : (first & 0xF0) == 0xE0         ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool is_glob(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

std::vector<std::string> nearest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, size_t most) {
  std::vector<std::pair<size_t, const std::string*>> ranked;
  for (const std::string& candidate : candidates) {
    const bool part = !wanted.empty() && contains_ignoring_case(candidate, wanted);
    const size_t distance = part ? 0 : edit_distance(wanted.substr(0, 200), candidate);
    if (part || distance <= std::max<size_t>(2, wanted.size() / 3))
      ranked.emplace_back(distance, &candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked) {
    if (names.size() == most) break;
    names.push_back(*name);
  }
  return names;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%^";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string shell_join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_quote(word);
  }
  return line;
}

std::string printable(std::string_view text, LineFeeds line_feeds) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    const bool kept = length > 0 && (!is_control(character) || character == "\t" ||
                                     (character == "\n" && line_feeds == LineFeeds::keep));
    if (kept) {
      safe += character;
    } else if (character == "\n") {
      safe += "\\n";
    } else {
      for (const char c : character)
        safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(character.size());
  }
  return safe;
}

std::string without_escape_sequences(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (;;) {
    const size_t escape = text.find('\x1b');
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) return plain;
    text.remove_prefix(escape);
    text.remove_prefix(escape_sequence_length(text));
  }
}

std::string shorten(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr std::string_view ellipsis = "…";
  size_t cut = most > ellipsis.size() ? most - ellipsis.size() : 0;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return std::string(text.substr(0, cut)) + std::string(ellipsis);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

namespace {

constexpr size_t gap_line_room = 64;  // of what cut_middle() puts into the gap, at most

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

void BoundedCapture::append(std::string_view bytes) {
  total_ += bytes.size();
  const size_t to_head = std::min(bytes.size(), head_limit_ - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (bytes.size() > tail_limit_) bytes.remove_prefix(bytes.size() - tail_limit_);

  const size_t room = tail_limit_ - ring_.size();
  const size_t grow = std::min(room, bytes.size());
  ring_.append(bytes.substr(0, grow));
  bytes.remove_prefix(grow);
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), ring_.size() - ring_start_);
    std::copy_n(bytes.begin(), piece, ring_.begin() + static_cast<ptrdiff_t>(ring_start_));
    ring_start_ = (ring_start_ + piece) % ring_.size();
    bytes.remove_prefix(piece);
  }
}

std::string BoundedCapture::tail() const {
  return ring_.substr(ring_start_) + ring_.substr(0, ring_start_);
}

// The line in the gap is part of `most`: what has been cut is not cut again.
std::string cut_middle(std::string text, size_t most) {
  if (text.size() <= most) return text;
  const size_t kept = most - std::min(most, gap_line_room);
  size_t head = kept / 4;
  size_t tail = text.size() - (kept - head);
  // A character has at most three such bytes; more of them are not text.
  for (int i = 0; i < 3 && head > 0 && is_continuation(text[head]); ++i) --head;
  for (int i = 0; i < 3 && tail < text.size() && is_continuation(text[tail]); ++i) ++tail;
  return text.replace(head, tail - head,
                      fmt::format("\n[... {} bytes not shown ...]\n", tail - head));
}

namespace {

// The number that ends the text, which is cut off.
std::optional<int> take_number_at_end(std::string_view& text) {
  size_t start = text.size();
  while (start > 0 && is_digit(text[start - 1]) && text.size() - start < 9) --start;
  int number = 0;
  const auto [end, failed] =
      std::from_chars(text.data() + start, text.data() + text.size(), number);
  if (start == text.size() || failed != std::errc()) return std::nullopt;
  text.remove_suffix(text.size() - start);
  return number;
}

std::optional<SourceLine> in_parentheses(std::string_view text) {
  if (!consume_end(text, ")")) return std::nullopt;
  const auto line = take_number_at_end(text);
  if (!line || !consume_end(text, "(")) return std::nullopt;
  return SourceLine{text, *line};
}

std::optional<SourceLine> after_colon(std::string_view text) {
  auto line = take_number_at_end(text);
  if (!line || !consume_end(text, ":")) return std::nullopt;
  std::string_view before_column = text;
  const auto line_before_column = take_number_at_end(before_column);
  if (line_before_column && consume_end(before_column, ":")) {
    text = before_column;
    line = line_before_column;
  }
  return SourceLine{text, *line};
}

}  // namespace

void LineReader::advance() {
  done_ = rest_.empty();
  const size_t end = rest_.find('\n');
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
}

std::optional<SourceLine> source_line_at_end(std::string_view text) {
  auto place = in_parentheses(text);
  if (!place) place = after_colon(text);
  if (!place) return std::nullopt;
  if (!place->file.starts_with('/')) place->file.remove_prefix(place->file.find_last_of(" \t") + 1);
  if (place->file.empty()) return std::nullopt;
  return place;
}

std::optional<Parts> split_at(std::string_view text, std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return Parts{text.substr(0, at), text.substr(at + separator.size())};
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool has_line_starting(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) return true;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    if (text.substr(at + 1).starts_with(prefix)) return true;
  return false;
}

bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool consume_end(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string_view leading_digits(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(0, end);
}

}  // namespace unflake
