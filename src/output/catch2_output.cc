#include <algorithm>
#include <array>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

// The reporter breaks a word at its last column with a hyphen.
constexpr size_t console_width = 79;

std::string_view label_of(std::string_view line) {
  if (!line.ends_with(':') || line.starts_with(' ')) return {};
  for (const auto* start : {"with ", "due to ", "explicitly ", "because "})
    if (line.starts_with(start)) return line;
  return {};
}

std::optional<SourceLine> failure_place(std::string_view line) {
  if (!consume_end(line, ": FAILED:")) return std::nullopt;
  return source_line_at_end(line);
}

// CAPTURE's lines, "name := value", are values.
bool is_capture(std::string_view line) {
  return contains(line, " := ");
}

// The paragraph below a label: indented, wrapped, and able to hold empty lines.
class Paragraph {
 public:
  explicit Paragraph(LineReader& in) {
    for (; !in.done() && belongs(in); in.advance()) add(in.line());
    finish_line();
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static bool belongs(LineReader in) {
    if (in.line().starts_with("  ")) return true;
    if (!in.line().empty()) return false;
    in.advance();
    return !in.done() && in.line().starts_with("  ");
  }

  void add(std::string_view line) {
    const bool broken = line.size() == console_width && line.ends_with('-');
    if (broken) line.remove_suffix(1);
    current_ += trim(line);
    if (!broken) finish_line();
  }

  void finish_line() {
    if (!current_.empty() && lines_.size() < 60) lines_.push_back(std::move(current_));
    current_.clear();
  }

  std::string current_;
  std::vector<std::string> lines_;
};

FailureKind kind_of(std::string_view label) {
  if (label.starts_with("due to unexpected exception")) return FailureKind::exception;
  if (label.starts_with("due to a fatal error condition")) return FailureKind::signal;
  return FailureKind::assertion;
}

void read_expression(LineReader& in, Failure& failure) {
  if (in.done() || !in.line().starts_with("  ")) return;
  const std::string_view expression = trim(in.line());
  if (!expression.starts_with("{Unknown expression")) failure.expression = expression;
  for (; !in.done() && in.line().starts_with("  "); in.advance()) {
  }
}

void read_labelled(LineReader& in, Failure& failure, Message& message) {
  std::string_view label = label_of(in.line());
  in.advance();
  if (failure.kind == FailureKind::assertion) failure.kind = kind_of(label);
  consume_end(label, ":");
  if (label.starts_with("because ")) message.say(label);
  const Paragraph paragraph(in);
  for (const std::string& line : paragraph.lines()) {
    const bool is_value = label == "with expansion" || is_capture(line);
    message.add_line(line, !is_value);
  }
}

// A fatal error's own line comes after the INFOs that were in force.
void keep_signal_only(Failure& failure) {
  if (failure.kind != FailureKind::signal) return;
  for (LineReader in(failure.message); !in.done(); in.advance())
    if (in.line().starts_with("SIG")) {
      failure.message = std::string(in.line());
      return;
    }
}

Failure take_failure(LineReader& in, const SourceLine& place) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = place.file;
  failure.line = place.line;
  Message message;
  read_expression(in, failure);
  while (!in.done() && !label_of(in.line()).empty()) read_labelled(in, failure, message);
  failure.message = std::move(message).text();
  keep_signal_only(failure);
  return failure;
}

std::optional<Failure> failure_without_place(std::string_view line) {
  if (!line.starts_with("No assertions in ")) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.message = line;
  return failure;
}

// "test cases: 1 | 1 failed" above "assertions: 1 | 1 passed": it was tagged to fail, and did not.
bool only_tagged_to_fail(std::string_view text) {
  bool case_failed = false;
  for (LineReader in(text); !in.done(); in.advance()) {
    if (in.line().starts_with("test cases: ")) case_failed = in.line().ends_with(" failed");
    if (case_failed && in.line().starts_with("assertions: "))
      return !contains(in.line(), " failed");
  }
  return false;
}

bool finished(std::string_view text) {
  return has_line_starting(text, "test cases: ");
}

bool ran_nothing(std::string_view text) {
  const bool none = has_line_starting(text, "No test cases matched ") ||
                    has_line_starting(text, "No tests ran") ||
                    has_line_starting(text, "Invalid Filter: ");
  return none && !finished(text);
}

std::optional<std::string> skip_reason(std::string_view text) {
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = in.line();
    if (!consume_end(line, ": SKIPPED:") || !source_line_at_end(line)) continue;
    in.advance();
    if (in.done() || label_of(in.line()).empty()) return "";
    in.advance();
    return join(Paragraph(in).lines(), " ");
  }
  return std::nullopt;
}

// The filters are in the first line that is printed, or are those that unflake itself gives.
bool tells_filters(std::string_view text) {
  for (LineReader in(text); !in.done(); in.advance())
    if (!trim(in.line()).empty())
      return in.line().starts_with("Filters: ") ||
             in.line().starts_with("Randomness seeded to: ") ||
             has_line_starting(text, "Filters: \"");
  return false;
}

bool broke_off(std::string_view text) {
  if (!tells_filters(text)) return false;
  constexpr std::array ends{"All tests passed", "test cases: ", "No test cases matched ",
                            "No tests ran",     "Passed ",      "Failed "};
  return std::ranges::none_of(ends, [&](const auto* end) { return contains(text, end); });
}

}  // namespace

std::vector<Failure> parse_catch2_failures(std::string_view text) {
  std::vector<Failure> failures;
  LineReader in(text);
  while (!in.done() && failures.size() < most_failures) {
    const auto place = failure_place(in.line());
    const auto placeless = failure_without_place(in.line());
    in.advance();
    if (place) failures.push_back(take_failure(in, *place));
    if (placeless) failures.push_back(*placeless);
  }
  if (failures.empty() && only_tagged_to_fail(text)) {
    failures.emplace_back();
    failures.back().kind = FailureKind::unexpected_pass;
    failures.back().message = "the test case is tagged to fail, and passed";
  }
  return failures;
}

const FrameworkOutput catch2_output{Framework::catch2, parse_catch2_failures, finished,
                                    ran_nothing,       skip_reason,           broke_off};

}  // namespace unflake
