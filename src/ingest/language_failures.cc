#include "ingest/report_reader.h"

#include <charconv>
#include <optional>

#include "model/outcome.h"
#include "output/output_parsers.h"
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

// "    queue_test.go:12: it is full", or "\t/src/queue.go:12 +0x1d" of a panic
Place go_place(std::string_view line) {
  const auto place = place_at_start(trim(line));
  return place && place->file.ends_with(".go") ? place : std::nullopt;
}

// The first of them that is not Go's own.
Place in_go(std::string_view text, std::string_view) {
  Place first;
  for (LineReader in(text); !in.done(); in.advance()) {
    const auto place = go_place(in.line());
    if (!place) continue;
    const bool is_own =
        contains(place->file, "/src/runtime/") || contains(place->file, "/src/testing/");
    if (!is_own) return place;
    if (!first) first = place;
  }
  return first;
}

constexpr Place (*places[])(std::string_view, std::string_view) = {in_python, in_rust, in_go,
                                                                   in_java};

// What Go prints around the words of a test.
bool is_go_mark(std::string_view line) {
  for (const std::string_view mark : {"=== ", "--- ", "FAIL", "exit status ", "goroutine "})
    if (line.starts_with(mark)) return true;
  return false;
}

// testify has labels: "Error:      \tNot equal:", and its own trace of places.
std::string_view go_line(std::string_view line) {
  line = trim(line);
  if (line.starts_with("Error Trace:") || line.starts_with("Test:")) return {};
  if (consume(line, "Error:")) line = trim(line);
  return line;
}

// Of "    queue_test.go:12: it is full" the words, with the lines that belong to them; of a panic
// what it says. Empty: it is not output of Go's.
std::string go_words(std::string_view text) {
  std::string words;
  bool is_inside = false;
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = trim(in.line());
    if (line.starts_with("panic: ")) return std::string(line.substr(0, line.find(" [recovered")));
    if (is_go_mark(line)) {
      is_inside = false;
    } else if (const auto place = go_place(line)) {
      line.remove_prefix(place->file.size() + 1);
      line.remove_prefix(leading_digits(line).size());
      is_inside = words.empty() && consume(line, ":");
    }
    if (is_inside && !go_line(line).empty()) words.append(go_line(line)).push_back('\n');
  }
  return words;
}

// What runners write when they know only the failure itself.
bool says_nothing(std::string_view message) {
  const std::string words = lower_case(trim(message));
  for (const std::string_view word : {"", "failed", "failure", "test failed", "error"})
    if (words == word) return true;
  return false;
}

// An exception's name is enough by itself.
std::string without_type(const std::string& words, const std::string& type) {
  std::string_view rest = trim(words);
  if (type.empty() || !consume(rest, type)) return words;
  if (trim(rest).empty()) return "";
  return consume(rest, ": ") || rest.starts_with('\n') ? std::string(trim(rest)) : words;
}

std::string words_of(const ReportedFailure& reported, const std::string& text) {
  if (!says_nothing(reported.message)) return reported.message;
  if (std::string words = go_words(text); !words.empty()) return words;
  return trim(text).empty() ? reported.message : text;
}

// Of a case's output only what Go printed is taken for the failure's own words.
std::string text_of(const ReportedFailure& reported, std::string_view output) {
  const std::string text = without_escape_sequences(reported.text.text());
  if (!trim(text).empty() || !says_nothing(reported.message)) return text;
  const std::string printed = without_escape_sequences(output);
  return go_words(printed).empty() ? text : printed;
}

// Only the first line was said: what follows shows values, source and frames.
std::string message_of(const std::string& words) {
  Message message;
  size_t lines = 0;
  for (LineReader in(trim(words)); !in.done() && lines < most_shown_lines; in.advance()) {
    const std::string_view line = trim(in.line());
    if (line.empty()) continue;
    message.add_line(line, lines++ == 0);
  }
  return std::move(message).text();
}

// Longer texts are not a word of a runner.
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

Failure read_language_failure(const ReportedFailure& reported, std::string_view classname,
                              std::string_view output) {
  const std::string text = text_of(reported, output);
  Failure failure;
  failure.kind = reported.is_error ? FailureKind::exception : FailureKind::assertion;
  failure.expression = reported.type;
  failure.message = message_of(without_type(words_of(reported, text), reported.type));
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
