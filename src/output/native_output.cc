#include <array>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

using Found = std::optional<Failure>;

Failure assertion(std::string_view file, int line) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = file;
  failure.line = line;
  return failure;
}

// "file.cc:12: rest", after anything that ends in a space.
struct Located {
  SourceLine place;
  std::string_view rest;
};
std::optional<Located> located(std::string_view text) {
  for (size_t from = 0;;) {
    const size_t colon = text.find(": ", from);
    if (colon == std::string_view::npos) return std::nullopt;
    const auto place = source_line_at_end(text.substr(from, colon - from));
    if (place) return Located{*place, text.substr(colon + 2)};
    from = colon + 2;
  }
}

// prog: file.c:12: void f(int): Assertion `x' failed.
Found c_assertion(LineReader& in) {
  std::string_view line = in.line();
  if (!consume_end(line, "' failed.")) return std::nullopt;
  auto parts = split_at(line, ": Assertion `");
  if (!parts) parts = split_at(line, ": Assertion '");
  if (!parts) return std::nullopt;
  const auto where = located(line.substr(0, parts->before.size() + 2));
  Failure failure = where ? assertion(where->place.file, where->place.line) : assertion("", 0);
  std::string_view function = where ? trim(where->rest) : "";
  consume_end(function, ":");
  failure.function = function;
  failure.expression = parts->after;
  return failure;
}

// Assertion failed: x (file.c: f: 12)
Found musl_assertion(LineReader& in) {
  std::string_view line = in.line();
  if (!consume(line, "Assertion failed: ") || !consume_end(line, ")")) return std::nullopt;
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos) return std::nullopt;
  const auto parts = split(line.substr(open + 2), ':');
  if (parts.size() < 3) return std::nullopt;
  const std::string place_text = parts[0] + ":" + std::string(trim(parts.back()));
  const auto place = source_line_at_end(place_text);
  if (!place) return std::nullopt;
  Failure failure = assertion(place->file, place->line);
  failure.function = trim(parts[1]);
  failure.expression = line.substr(0, open);
  return failure;
}

// /usr/include/c++/12/debug/vector:442: / In function: / ... / Error: attempt to ...
Found libstdcxx_debug(LineReader& in) {
  std::string_view line = in.line();
  if (!consume_end(line, ":")) return std::nullopt;
  const auto place = source_line_at_end(line);
  LineReader ahead = in;
  ahead.advance();
  if (!place || ahead.done() || ahead.line() != "In function:") return std::nullopt;
  for (size_t lines = 0; !ahead.done() && lines < 40; ++lines, ahead.advance()) {
    if (!ahead.line().starts_with("Error: ")) continue;
    Failure failure = assertion(place->file, place->line);
    Message message;
    for (; !ahead.done() && !ahead.line().empty(); ahead.advance()) message.say(ahead.line());
    failure.message = std::move(message).text();
    in = ahead;
    return failure;
  }
  return std::nullopt;
}

// terminate called after throwing an instance of 'E' /   what():  text
Found uncaught_exception(LineReader& in) {
  std::string_view line = in.line();
  if (!consume(line, "terminate called ")) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::exception;
  if (!consume(line, "after throwing an instance of '")) {
    failure.message = in.line();
    return failure;
  }
  consume_end(line, "'");
  failure.message = line;
  LineReader ahead = in;
  ahead.advance();
  std::string_view what = ahead.line();
  if (consume(what, "  what():  ")) failure.message += ": " + std::string(what);
  return failure;
}

// libc++abi: terminating due to uncaught exception of type E: text
Found libcxx_exception(LineReader& in) {
  std::string_view line = in.line();
  if (!consume(line, "libc++abi: ")) return std::nullopt;
  consume(line, "terminating with uncaught exception of type ");
  consume(line, "terminating due to uncaught exception of type ");
  Failure failure;
  failure.kind = FailureKind::exception;
  failure.message = line;
  return failure;
}

constexpr std::array library_complaints{"*** stack smashing detected ***",
                                        "*** buffer overflow detected ***",
                                        "*** Error in `",
                                        "*** bit out of range ",
                                        "free(): ",
                                        "malloc(): ",
                                        "realloc(): ",
                                        "malloc_consolidate(): ",
                                        "munmap_chunk(): ",
                                        "double free or corruption ",
                                        "corrupted size vs. prev_size",
                                        "corrupted double-linked list",
                                        "Fatal glibc error: ",
                                        "pure virtual method called",
                                        "*** longjmp causes ",
                                        "The futex facility returned an unexpected error code"};

Found library_complaint(LineReader& in) {
  for (const auto* start : library_complaints) {
    if (!in.line().starts_with(start)) continue;
    Failure failure;
    failure.kind = FailureKind::signal;
    failure.message = in.line();
    return failure;
  }
  return std::nullopt;
}

// "Check failed: a == b (1 vs. 2) words": what is compared, what was seen, what the author says.
void read_check(std::string_view text, Failure& failure) {
  Message message;
  const auto seen = split_at(text, " vs. ");
  const size_t open = seen ? seen->before.rfind(" (") : std::string_view::npos;
  std::string_view check = text.substr(0, open);
  if (open == std::string_view::npos || !consume(check, "Check failed: ")) {
    message.say(text);
  } else {
    failure.expression = trim(check);
    const size_t close = text.find(')', seen->before.size());
    message.show(text.substr(open + 1, close - open));
    if (close != std::string_view::npos) message.say(text.substr(close + 1));
  }
  failure.message = std::move(message).text();
}

// F0102 12:00:00.123456 1234 file.cc:12] Check failed: x
Found glog_fatal(LineReader& in) {
  const std::string_view line = in.line();
  if (!line.starts_with('F')) return std::nullopt;
  const size_t digits = leading_digits(line.substr(1)).size();
  if (digits != 4 && digits != 8) return std::nullopt;
  const auto parts = split_at(line, "] ");
  const auto place = parts ? source_line_at_end(parts->before) : std::nullopt;
  if (!place) return std::nullopt;
  Failure failure = assertion(place->file, place->line);
  read_check(parts->after, failure);
  return failure;
}

// [1234:1234:0102/120000.123456:FATAL:file.cc(12)] Check failed: x
Found chromium_fatal(LineReader& in) {
  const auto parts = split_at(in.line(), "] ");
  const auto tag = parts ? split_at(parts->before, ":FATAL:") : std::nullopt;
  const auto place =
      tag && tag->before.starts_with('[') ? source_line_at_end(tag->after) : std::nullopt;
  if (!place) return std::nullopt;
  Failure failure = assertion(place->file, place->line);
  read_check(parts->after, failure);
  return failure;
}

// ASSERT: "x" in file f.cpp, line 3 or ASSERT failure in f: "text", file f.cpp, line 3
Found qt_assertion(LineReader& in) {
  std::string_view line = in.line();
  const bool plain = consume(line, "ASSERT: ");
  if (!plain && !consume(line, "ASSERT failure in ")) return std::nullopt;
  const auto parts = split_at(line, plain ? " in file " : ", file ");
  const auto file_and_line = parts ? split_at(parts->after, ", line ") : std::nullopt;
  if (!file_and_line) return std::nullopt;
  const std::string place_text =
      std::string(file_and_line->before) + ":" + std::string(leading_digits(file_and_line->after));
  const auto place = source_line_at_end(place_text);
  if (!place) return std::nullopt;
  Failure failure = assertion(place->file, place->line);
  std::string_view what = parts->before;
  if (plain && consume(what, "\"")) consume_end(what, "\"");
  (plain ? failure.expression : failure.message) = what;
  return failure;
}

// Assertion failed in test/file.c on line 12: `a == b` (1 == 2)
Found assertion_on_line(LineReader& in) {
  const auto parts = split_at(in.line(), "Assertion failed in ");
  const auto file_and_line = parts ? split_at(parts->after, " on line ") : std::nullopt;
  if (!file_and_line) return std::nullopt;
  const std::string_view number = leading_digits(file_and_line->after);
  const std::string place_text = std::string(file_and_line->before) + ":" + std::string(number);
  const auto place = source_line_at_end(place_text);
  if (!place) return std::nullopt;
  Failure failure = assertion(place->file, place->line);
  std::string_view what = file_and_line->after.substr(number.size());
  consume(what, ": ");
  const size_t end = what.starts_with('`') ? what.find('`', 1) : std::string_view::npos;
  failure.expression = end == std::string_view::npos ? trim(what) : what.substr(1, end - 1);
  Message message;
  if (end != std::string_view::npos) message.show(what.substr(end + 1));
  failure.message = std::move(message).text();
  return failure;
}

// One way in which a library says that it gives up.
constexpr std::array last_words{
    c_assertion,       musl_assertion, libstdcxx_debug, uncaught_exception, libcxx_exception,
    library_complaint, glog_fatal,     chromium_fatal,  qt_assertion,       assertion_on_line};

Found abort_at(LineReader& in) {
  for (const auto& recognise : last_words)
    if (Found failure = recognise(in)) return failure;
  return std::nullopt;
}

}  // namespace

std::vector<Failure> parse_native_aborts(std::string_view text) {
  std::vector<Failure> failures;
  for (LineReader in(text); !in.done() && failures.size() < most_failures; in.advance())
    if (Found failure = abort_at(in)) failures.push_back(std::move(*failure));
  return failures;
}

}  // namespace unflake
