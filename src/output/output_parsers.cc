#include "output/output_parsers.h"

#include <algorithm>
#include <array>
#include <string>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_name_bytes = 500;
constexpr size_t most_message_bytes = 4000;

void append_bounded(std::vector<Failure>& all, std::vector<Failure> more) {
  for (Failure& failure : more) {
    if (all.size() == most_failures) return;
    all.push_back(bounded(std::move(failure)));
  }
}

bool may_print(Framework tested, Framework printed) {
  return tested == printed || tested == Framework::ctest || tested == Framework::command;
}

void add_checks(Evidence& evidence, std::string_view text, Framework framework) {
  for (const FrameworkOutput& output : framework_outputs()) {
    if (!may_print(framework, output.framework)) continue;
    append_bounded(evidence.checks, output.failures(text));
    if (evidence.checks.empty()) continue;
    evidence.framework = &output;
    return;
  }
}

}  // namespace

std::span<const FrameworkOutput> framework_outputs() {
  static const std::array table{gtest_output, catch2_output, boost_output, doctest_output};
  return table;
}

Evidence evidence_in(std::string_view text, Framework framework) {
  Evidence evidence;
  append_bounded(evidence.reports, parse_sanitizer_reports(text));
  append_bounded(evidence.reports, parse_valgrind_reports(text));
  append_bounded(evidence.aborts, parse_native_aborts(text));
  add_checks(evidence, text, framework);
  return evidence;
}

Failure bounded(Failure failure) {
  const auto cut = [](std::string& text, size_t most) {
    text = shorten(printable(shorten(text, most), LineFeeds::keep), most);
  };
  cut(failure.file, most_name_bytes);
  cut(failure.function, most_name_bytes);
  cut(failure.expression, most_name_bytes);
  cut(failure.message, most_message_bytes);
  return failure;
}

namespace {

void add_pieces(const CapturedOutput& output, std::vector<TextPiece>& pieces) {
  const bool complete = output.total <= output.head.size() + output.tail.size();
  if (complete) {
    if (!output.head.empty() || !output.tail.empty())
      pieces.push_back({output.head + output.tail, false, false});
    return;
  }
  pieces.push_back({output.head, false, true});
  pieces.push_back({output.tail, true, false});
}

}  // namespace

std::vector<TextPiece> pieces_of(const ProcessResult& process) {
  std::vector<TextPiece> pieces;
  add_pieces(process.output, pieces);
  add_pieces(process.errors, pieces);
  return pieces;
}

std::string readable_lines(const TextPiece& piece) {
  std::string_view text = piece.text;
  if (piece.cut_at_end) text = text.substr(0, text.find_last_of('\n') + 1);
  if (piece.cut_at_start) {
    const size_t first_end = text.find('\n');
    text.remove_prefix(first_end == std::string_view::npos ? text.size() : first_end + 1);
  }
  return without_escape_sequences(text);
}

namespace {

constexpr size_t most_bytes_of_a_line = 500;

constexpr std::array levels{"trace", "debug", "info",  "notice",   "warn",   "warning",
                            "error", "err",   "fatal", "critical", "verbose"};

constexpr std::array troubles{"error", "fail", "fatal", "exception", "panic", "traceback", "abort"};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string_view leading_letters(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_letter(text[end])) ++end;
  return text.substr(0, end);
}

bool is_level(std::string_view word) {
  const std::string lower = lower_case(word);
  return std::find(levels.begin(), levels.end(), lower) != levels.end();
}

// "[12:00:01] ", "[info] ", "[main.cc:12] "
bool starts_with_tag(std::string_view line) {
  if (!line.starts_with('[')) return false;
  const std::string_view tag = line.substr(1, line.substr(0, 80).find(']') - 1);
  return is_level(trim(tag)) || std::any_of(tag.begin(), tag.end(), is_digit);
}

// "2024-01-02 ", "12:30:45.678 "
bool starts_with_time(std::string_view line) {
  const size_t digits = leading_digits(line).size();
  if (digits != 2 && digits != 4) return false;
  const std::string_view rest = line.substr(digits);
  return rest.size() > 1 && std::string_view(":-/").find(rest[0]) != std::string_view::npos &&
         is_digit(rest[1]);
}

// "I0102 12:00:00.123456 "
bool starts_with_glog_prefix(std::string_view line) {
  if (line.empty() || std::string_view("IWEF").find(line[0]) == std::string_view::npos)
    return false;
  const size_t digits = leading_digits(line.substr(1)).size();
  return (digits == 4 || digits == 8) && line.substr(1 + digits).starts_with(' ');
}

std::string_view last_word(std::string_view text) {
  text = trim(text);
  return text.substr(text.find_last_of(" \t=:(") + 1);
}

bool says_there_is_none(std::string_view before, std::string_view after) {
  const std::string_view word = last_word(before);
  for (const auto* none : {"0", "no", "without", "zero", "not", "never"})
    if (word == none) return true;
  after.remove_prefix(leading_letters(after).size());
  after = trim(after);
  if (!consume(after, ":") && !consume(after, "=")) return false;
  return leading_digits(trim(after)) == "0";
}

bool tells_of_trouble(std::string_view line) {
  const std::string lower = lower_case(line.substr(0, most_bytes_of_a_line));
  const std::string_view text = lower;
  for (const auto* trouble : troubles) {
    const size_t at = text.find(trouble);
    if (at == std::string_view::npos) continue;
    if (!says_there_is_none(text.substr(0, at), text.substr(at))) return true;
  }
  return false;
}

// A traceback's point is its first line that is not indented.
std::string_view point_of_traceback(LineReader in) {
  const std::string_view title = in.line();
  for (in.advance(); !in.done(); in.advance())
    if (!in.line().empty() && !is_blank(in.line().front())) return in.line();
  return title;
}

}  // namespace

bool looks_like_log(std::string_view line) {
  line = trim(line);
  if (line.empty()) return true;
  const std::string_view word = leading_letters(line);
  const bool names_level =
      is_level(word) && word.size() < line.size() &&
      std::string_view(":] |-").find(line[word.size()]) != std::string_view::npos;
  return starts_with_tag(line) || starts_with_time(line) || starts_with_glog_prefix(line) ||
         line.starts_with('{') || line.starts_with("==") || names_level;
}

std::string_view most_telling_line(const std::vector<std::string>& texts) {
  std::string_view last;
  for (const std::string& text : texts)
    for (LineReader in(text); !in.done(); in.advance()) {
      if (trim(in.line()).empty()) continue;
      if (in.line().starts_with("Traceback (most recent call last)")) return point_of_traceback(in);
      if (tells_of_trouble(in.line())) return trim(in.line());
      last = in.line();
    }
  return trim(last);
}

}  // namespace unflake
