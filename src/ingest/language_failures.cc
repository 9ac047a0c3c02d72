#include "ingest/language_failures.h"

#include <charconv>
#include <optional>

#include "trace/message.h"
#include "trace/output_parsers.h"
#include "trace/scan.h"
#include "util/lower_case.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_shown_lines = 20;

struct PlaceInText {
  std::string_view file;
  int line = 0;
};
using Place = std::optional<PlaceInText>;

int number_at(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "src/queue.rs:12:5" or "queue_test.go:12: it is full": the first place in a line of text
Place place_at_start(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = leading_digits(text.substr(colon + 1));
  const std::string_view file = text.substr(0, colon);
  if (digits.empty() || file.find('.') == std::string_view::npos || contains(file, " "))
    return std::nullopt;
  return PlaceInText{file, number_at(digits)};
}

// "thread 'main' panicked at src/queue.rs:12:5:", and before Rust 1.73
// "panicked at 'it is full', src/queue.rs:12:5"
Place in_rust(std::string_view text, std::string_view) {
  const auto parts = split_at(text, "panicked at ");
  if (!parts) return std::nullopt;
  std::string_view line = parts->after.substr(0, parts->after.find('\n'));
  const size_t message_end = line.rfind("', ");
  if (line.starts_with('\'') && message_end != std::string_view::npos)
    line.remove_prefix(message_end + 3);
  return place_at_start(line);
}

// "at com.acme.QueueTest.isFull(QueueTest.java:12)": of the test's class, else the first
Place in_java(std::string_view text, std::string_view classname) {
  Place first;
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = trim(in.line());
    const size_t open = line.rfind('(');
    if (!consume(line, "at ") || !line.ends_with(')') || open == std::string_view::npos) continue;
    const auto parts = split_at(line.substr(line.rfind('(') + 1), ":");
    if (!parts || leading_digits(parts->after).empty()) continue;
    const PlaceInText place{parts->before, number_at(parts->after)};
    if (!classname.empty() && line.starts_with(classname)) return place;
    if (!first) first = place;
  }
  return first;
}

// "tests/test_queue.py:12: AssertionError", the last of them
Place in_python(std::string_view text, std::string_view) {
  Place last;
  for (LineReader in(text); !in.done(); in.advance()) {
    const auto place = place_at_start(in.line());
    if (place && place->file.ends_with(".py")) last = place;
  }
  return last;
}

// "    queue_test.go:12: it is full", the first of them
Place in_go(std::string_view text, std::string_view) {
  for (LineReader in(text); !in.done(); in.advance()) {
    const auto place = place_at_start(trim(in.line()));
    if (place && place->file.ends_with(".go")) return place;
  }
  return std::nullopt;
}

constexpr Place (*places[])(std::string_view, std::string_view) = {in_python, in_rust, in_go,
                                                                   in_java};

// Only the first line was said: what follows shows values, source and frames.
std::string message_of(const ReportedFailure& reported, const std::string& text) {
  const std::string& words = trim(reported.message).empty() ? text : reported.message;
  Message message;
  size_t lines = 0;
  for (LineReader in(trim(words)); !in.done() && lines < most_shown_lines; in.advance()) {
    const std::string_view line = trim(in.line());
    if (line.empty()) continue;
    message.add_line(line, lines++ == 0);
  }
  return std::move(message).text();
}

// Longer texts are no word of a runner.
std::string beginning_of(std::string_view text) {
  return lower_case(text.substr(0, 400));
}

// What runners say when they stop a test. A test's own assertion about a time-out says other
// things.
constexpr std::string_view timeout_messages[] = {"timeout",
                                                 "timed out",
                                                 "test timeout",
                                                 "failed: timeout >",
                                                 "failed: timeout (>",
                                                 "test timed out after",
                                                 "execution timed out after",
                                                 "panic: test timed out after"};
constexpr std::string_view timeout_types[] = {"timeout", "test timeout", "testtimedoutexception"};

}  // namespace

bool tells_timeout(const ReportedFailure& reported) {
  const std::string message = beginning_of(trim(reported.message)),
                    type = beginning_of(reported.type);
  for (const std::string_view words : timeout_types)
    if (type == words || type.ends_with("." + std::string(words))) return true;
  for (const std::string_view words : timeout_messages)
    if (message == words || (words.size() > 12 && message.starts_with(words))) return true;
  return false;
}

Failure read_language_failure(const ReportedFailure& reported, std::string_view classname) {
  const std::string text = without_escape_sequences(reported.text.text());
  Failure failure;
  failure.kind = reported.is_error ? FailureKind::exception : FailureKind::assertion;
  failure.expression = reported.type;
  failure.message = message_of(reported, text);
  for (const auto find : places) {
    const Place place = find(text, classname);
    if (!place) continue;
    failure.file = place->file;
    failure.line = place->line;
    break;
  }
  return bounded(std::move(failure));
}

}  // namespace unflake
