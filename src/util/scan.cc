#include "util/scan.h"

#include <charconv>

namespace unflake {
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
