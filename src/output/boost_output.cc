#include <algorithm>
#include <array>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_detail_lines = 20;

struct Heading {
  std::string_view file;
  int line = 0;  // 0: the library does not know
  std::string_view text;
};

// file(12): error: in "suite/case": text
std::optional<Heading> heading_in(std::string_view line) {
  for (const auto* mark : {": fatal error: in \"", ": error: in \""}) {
    const auto parts = split_at(line, mark);
    if (!parts) continue;
    const auto name_and_text = split_at(parts->after, "\": ");
    const auto place = source_line_at_end(parts->before);
    if (!name_and_text || !place) continue;
    return Heading{place->file, place->line, name_and_text->after};
  }
  return std::nullopt;
}

std::optional<SourceLine> checkpoint_in(std::string_view line) {
  const auto parts = split_at(line, ": last checkpoint");
  return parts ? source_line_at_end(parts->before) : std::nullopt;
}

// "difference{0.1} between a{1} and b{1.1} exceeds 0.1%" or "absolute value of v{0.1} exceeds
// 0.01" without the values.
std::string without_braces(std::string_view text) {
  std::string plain;
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (depth == 0) plain += c;
    if (c == '}' && depth > 0) --depth;
  }
  return plain;
}

// check a == b has failed [1 != 2]
bool read_check(std::string_view text, Failure& failure, Message& message) {
  consume(text, "critical ");
  if (text.starts_with("difference{") || text.starts_with("absolute value of ")) {
    failure.expression = without_braces(text);
    message.show(text);
    return true;
  }
  const auto parts = split_at(text, " has failed");
  std::string_view expression = parts ? parts->before : "";
  if (!consume(expression, "check ")) return false;
  failure.expression = expression;
  std::string_view rest = trim(parts->after);
  if (rest != ".") message.show(rest);
  return true;
}

struct SystemError {
  std::string_view start;
  FailureKind kind;
};

constexpr std::array system_errors{
    SystemError{"signal: SIGALRM (timeout", FailureKind::timeout},
    SystemError{"signal: ", FailureKind::signal},
    SystemError{"memory access violation", FailureKind::signal},
    SystemError{"no mapping at fault address", FailureKind::signal},
    SystemError{"child has exited", FailureKind::signal},
};

void read_heading(const Heading& heading, Failure& failure, Message& message) {
  if (read_check(heading.text, failure, message)) return;
  if (heading.line == 0) failure.kind = FailureKind::exception;
  std::string_view text = heading.text;
  for (const SystemError& error : system_errors)
    if (heading.line == 0 && text.starts_with(error.start)) {
      failure.kind = error.kind;
      consume(text, "signal: ");
      break;
    }
  message.say(text);
}

// BOOST_TEST_CONTEXT, element-wise mismatches and what a boost::exception carries.
void read_details(LineReader& in, Failure& failure, Message& message) {
  bool in_context = false;
  for (size_t lines = 0; !in.done() && lines < most_detail_lines; ++lines, in.advance()) {
    const std::string_view line = in.line();
    const bool tells =
        line.starts_with("Dynamic exception type: ") || line.starts_with("std::exception::what: ");
    const bool opens_context = line.ends_with(" occurred in a following context:");
    in_context |= opens_context;
    const bool shows = opens_context || line.starts_with("Mismatch at position ") ||
                       line.starts_with("  - mismatch at position ") ||
                       (in_context && line.starts_with("    "));
    if (tells && failure.kind == FailureKind::exception)
      message.say(line);
    else if (shows)
      message.show(line);
    else
      return;
  }
}

Failure take_failure(LineReader& in, const Heading& heading) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  if (heading.line > 0) failure.file = heading.file;
  failure.line = heading.line;
  Message message;
  read_heading(heading, failure, message);
  read_details(in, failure, message);
  failure.message = std::move(message).text();
  const auto checkpoint = in.done() ? std::nullopt : checkpoint_in(in.line());
  if (checkpoint && failure.line == 0) {
    failure.file = checkpoint->file;
    failure.line = checkpoint->line;
  }
  return failure;
}

bool finished(std::string_view text) {
  return has_line_starting(text, "*** ");
}

bool ran_nothing(std::string_view text) {
  return has_line_starting(text, "Test setup error: ") &&
         contains(text, "no test cases matching filter");
}

// The report may go elsewhere, so it is the log that must show an end.
bool broke_off(std::string_view text) {
  const size_t entered = text.rfind("Entering test case \"");
  if (entered == text.npos) return false;
  return !contains(text.substr(entered), "Leaving test case \"") &&
         !has_line_starting(text, "*** ") && !has_line_starting(text, "Test module \"");
}

// file(12): Entering test case "name"
bool is_progress(std::string_view line) {
  if (line == "Test is aborted") return true;
  for (const auto* start : {"Entering test module \"", "Leaving test module \""})
    if (line.starts_with(start)) return true;
  const size_t colon = line.find("): ");
  if (colon == line.npos || !source_line_at_end(line.substr(0, colon + 1))) return false;
  line.remove_prefix(colon + 3);
  for (const auto* start : {"Entering test ", "Leaving test "})
    if (line.starts_with(start)) return true;
  return line.starts_with("Test ") && line.ends_with(" is skipped because disabled");
}

}  // namespace

std::string without_boost_progress(std::string_view text) {
  std::string rest;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    if (!is_progress(trim(line))) rest += line;
    text.remove_prefix(end);
  }
  return rest;
}

std::vector<Failure> parse_boost_failures(std::string_view text) {
  std::vector<Failure> failures;
  LineReader in(text);
  while (!in.done() && failures.size() < most_failures) {
    const auto heading = heading_in(in.line());
    in.advance();
    if (heading) failures.push_back(take_failure(in, *heading));
  }
  return failures;
}

const FrameworkOutput boost_output{
    Framework::boost_test, parse_boost_failures, finished, ran_nothing, nullptr, broke_off};

}  // namespace unflake
