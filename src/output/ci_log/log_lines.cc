#include "output/ci_log/ci_log.h"

#include <algorithm>
#include <array>

#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Whether the text begins with the shape, in which 0 means any digit.
bool has_shape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == '0' ? !is_digit(text[i]) : text[i] != shape[i]) return false;
  return true;
}

size_t blank_at(std::string_view text, size_t at) {
  return at < text.size() && text[at] == ' ' ? 1 : 0;
}

// "12:30:45.678Z", "12:30:45,678", "12:30:45+02:00"
size_t clock_length(std::string_view text) {
  if (!has_shape(text, "00:00:00")) return 0;
  size_t end = 8;
  if (end + 1 < text.size() && (text[end] == '.' || text[end] == ',') && is_digit(text[end + 1]))
    end += 1 + leading_digits(text.substr(end + 1)).size();
  if (end < text.size() && text[end] == 'Z') return end + 1;
  return has_shape(text.substr(end), "+00:00") ? end + 6 : end;
}

// "2024-05-01T12:30:45.1234567Z"
size_t date_length(std::string_view text) {
  if (!has_shape(text, "0000-00-00") || text.size() < 11) return 0;
  if (text[10] != 'T' && text[10] != ' ') return 0;
  const size_t clock = clock_length(text.substr(11));
  return clock == 0 ? 0 : 11 + clock;
}

// GitLab's stream number after the time: "00O " and "01E+"
size_t stream_length(std::string_view text) {
  if (text.size() < 4 || !is_hex_digit(text[0]) || !is_hex_digit(text[1])) return 0;
  return (text[2] == 'O' || text[2] == 'E') && (text[3] == ' ' || text[3] == '+') ? 4 : 0;
}

size_t time_prefix(std::string_view text) {
  const size_t time = std::max(date_length(text), clock_length(text));
  if (time == 0) return 0;
  if (time == text.size()) return time;
  if (text[time] != ' ') return 0;
  return time + 1 + stream_length(text.substr(time + 1));
}

// TeamCity's "W:\t [Step 1/2]" after the time
size_t step_length(std::string_view text) {
  const size_t start = text.find('[');
  if (start > 6 || !text.substr(start).starts_with("[Step ")) return 0;
  const size_t end = text.find(']', start);
  return end == std::string_view::npos ? 0 : end + 1;
}

// "[2024-05-01T12:30:45.678Z] ", "[12:30:45]i:\t [Step 1/2] "
size_t bracketed_time_prefix(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const size_t time = std::max(date_length(text.substr(1)), clock_length(text.substr(1)));
  if (time == 0 || !text.substr(1 + time).starts_with(']')) return 0;
  const size_t end = time + 2 + step_length(text.substr(time + 2));
  return end + blank_at(text, end);
}

// "job<tab>step<tab>", as `gh run view --log` prints it
size_t job_prefix(std::string_view text) {
  const size_t first = text.find('\t');
  const size_t second = first == std::string_view::npos ? first : text.find('\t', first + 1);
  if (second == std::string_view::npos) return 0;
  std::string_view rest = text.substr(second + 1);
  consume(rest, byte_order_mark);
  return date_length(rest) > 0 ? text.size() - rest.size() : 0;
}

bool is_service_letter(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

std::string_view service_name(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_service_letter(text[end])) ++end;
  return text.substr(0, end);
}

// "service-1  | "
size_t service_prefix(std::string_view text) {
  size_t end = service_name(text).size();
  if (end == 0) return 0;
  while (blank_at(text, end)) ++end;
  if (end >= text.size() || text[end] != '|') return 0;
  return end + 1 + blank_at(text, end + 1);
}

constexpr std::array prefixes{job_prefix, time_prefix, bracketed_time_prefix, service_prefix,
                              time_prefix};

// What test frameworks and CTest print at the start of a line, and nobody else.
bool is_test_mark(std::string_view line) {
  constexpr std::array marks{"[ RUN      ] ",
                             "[       OK ] ",
                             "[  FAILED  ] ",
                             "[  PASSED  ] ",
                             "[----------] ",
                             "[==========] ",
                             "[doctest] ",
                             "TEST CASE:  ",
                             "test cases: ",
                             "All tests passed (",
                             "*** No errors detected",
                             "Test project ",
                             "The following tests FAILED:"};
  return std::ranges::any_of(marks, [&](auto* mark) { return line.starts_with(mark); });
}

// A time at the start of a line may be the test's own. It is the CI system's when the marks of test
// frameworks come after one too, or, where there are no marks, most other lines.
bool is_in_use(size_t (*prefix)(std::string_view), const std::vector<LogLine>& lines) {
  size_t with = 0, without = 0, open_marks = 0;
  for (const LogLine& line : lines) {
    if (line.text.empty()) continue;
    const size_t length = prefix(line.text);
    if (length > 0 && is_test_mark(line.text.substr(length))) return true;
    if (length == 0 && is_test_mark(line.text)) ++open_marks;
    ++(length > 0 ? with : without);
  }
  return open_marks == 0 && with > without;
}

void remove_prefix(size_t (*prefix)(std::string_view), std::vector<LogLine>& lines) {
  if (!is_in_use(prefix, lines)) return;
  for (LogLine& line : lines) {
    const size_t length = prefix(line.text);
    if (length > 0 && prefix == service_prefix) line.source = service_name(line.text);
    line.text.remove_prefix(length);
  }
}

// A progress bar writes over its line.
std::string_view last_written(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line.substr(line.find_last_of('\r') + 1);
}

bool is_build_step(std::string_view line) {
  if (!consume(line, "[")) return false;
  for (const auto* separator : {"/", "] "}) {
    const size_t digits = leading_digits(line).size();
    if (digits == 0) return false;
    line.remove_prefix(digits);
    if (!consume(line, separator)) return false;
  }
  for (const auto* verb : {"Building ", "Linking ", "Generating ", "Creating ", "Automatic "})
    if (line.starts_with(verb)) return true;
  return false;
}

bool is_fold(std::string_view line) {
  constexpr std::array marks{"##[group]",      "##[endgroup]", "##[section]",  "##[command]",
                             "::group::",      "::endgroup::", "travis_fold:", "travis_time:",
                             "section_start:", "section_end:"};
  return std::ranges::any_of(marks, [&](auto* mark) { return line.starts_with(mark); });
}

void remove_noise(std::vector<LogLine>& lines) {
  std::erase_if(lines,
                [](const LogLine& line) { return is_fold(line.text) || is_build_step(line.text); });
  for (LogLine& line : lines)
    for (const auto* level : {"##[error]", "##[warning]", "##[debug]"}) consume(line.text, level);
}

// Where the last `most_log_lines` begin, and the number of the first of them.
std::pair<size_t, size_t> start_of_last_lines(std::string_view text) {
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n'));
  size_t number = 1, at = 0;
  for (; number + most_log_lines <= lines; ++number) at = text.find('\n', at) + 1;
  return {at, number};
}

}  // namespace

std::vector<LogLine> undecorated_lines(std::string_view text) {
  consume(text, byte_order_mark);
  auto [start, number] = start_of_last_lines(text);
  std::vector<LogLine> lines;
  for (LineReader in(text.substr(start)); !in.done(); in.advance())
    lines.push_back({last_written(in.line()), {}, number++});
  for (const auto& prefix : prefixes) remove_prefix(prefix, lines);
  remove_noise(lines);
  return lines;
}

}  // namespace unflake
