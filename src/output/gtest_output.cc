#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_block_lines = 60;

// GoogleTest's text of one failed assertion, and what becomes of it.
struct Block {
  std::vector<std::string_view> lines;
  Failure failure;
  Message message;
  size_t next = 0;  // first line that has not been read

  bool done() const { return next >= lines.size(); }
  std::string_view line() const { return lines[next]; }
  std::string_view take() { return lines[next++]; }
};

struct Place {
  std::string file;
  int line = 0;
};

std::optional<Place> failure_place(std::string_view line) {
  if (!consume_end(line, ": Failure")) return std::nullopt;
  if (line.ends_with("unknown file")) return Place{};
  const auto place = source_line_at_end(line);
  if (!place) return std::nullopt;
  return Place{std::string(place->file), place->line};
}

bool ends_block(std::string_view line) {
  constexpr std::array marks{"[ RUN      ]", "[       OK ]", "[  FAILED  ]",      "[  SKIPPED ]",
                             "[----------]", "[==========]", "Google Test trace:"};
  return failure_place(line) || std::any_of(marks.begin(), marks.end(),
                                            [&](auto* mark) { return line.starts_with(mark); });
}

void show_while(Block& block, bool (*belongs)(std::string_view)) {
  while (!block.done() && belongs(block.line())) block.message.show(block.take());
}

// Where GoogleTest stops and the `<<` text begins. The program's own output may follow without a
// mark, so only the first line is taken for the author's.
void read_authors_text(Block& block) {
  if (!block.done() && !looks_like_log(block.line())) block.message.say(block.take());
  while (!block.done()) block.message.show(block.take());
}

//   a
//     Which is: 1
//   b
void read_equality(Block& block) {
  block.take();
  std::string sides;
  for (int side = 0; side < 2 && !block.done() && block.line().starts_with("  "); ++side) {
    if (side == 1) sides += " == ";
    sides += trim(block.take());
    show_while(block, [](std::string_view line) { return line.starts_with("    "); });
  }
  block.failure.expression = std::move(sides);
  show_while(block, [](std::string_view line) { return line == "Ignoring case"; });
  const auto in_diff = [](std::string_view line) { return !line.empty(); };
  if (!block.done() && block.line() == "With diff:") {
    show_while(block, in_diff);
    if (!block.done()) block.take();
  }
}

// "  Actual: false (no route)": what an AssertionResult was given is the author's.
void read_assertion_result(Block& block) {
  std::string_view actual = block.line();
  consume(actual, "  Actual: ");
  if (!consume(actual, "false (") && !consume(actual, "true (")) return;
  consume_end(actual, ")");
  block.message.say(actual);
}

// EXPECT_TRUE says Actual before Expected, EXPECT_THAT after it.
void read_value_of(Block& block) {
  block.failure.expression = block.take().substr(std::string_view("Value of: ").size());
  bool actual_seen = false;
  bool expected_seen = false;
  if (!block.done()) read_assertion_result(block);
  while (!block.done() && !(actual_seen && expected_seen)) {
    actual_seen |= block.line().starts_with("  Actual: ");
    expected_seen |= block.line().starts_with("Expected: ");
    block.message.show(block.take());
  }
}

// Expected: (a) < (b), actual: 3 vs 2
void read_comparison(Block& block) {
  std::string_view line = block.take();
  consume(line, "Expected: ");
  const auto parts = split_at(line, ", actual: ");
  block.failure.expression = parts ? parts->before : line;
  if (parts) block.message.show(parts->after);
}

// Expected: f() throws an exception of type E. / Actual: it throws nothing.
void read_expectation(Block& block) {
  std::string_view line = block.take();
  consume(line, "Expected: ");
  consume_end(line, ".");
  block.failure.expression = line;
  if (!block.done() && block.line().starts_with("  Actual: ")) block.message.say(block.take());
}

// The difference between a and b is 1, which exceeds 0.5, where
void read_difference(Block& block) {
  std::string_view line = block.take();
  consume(line, "The difference between ");
  consume_end(line, ", where");
  const auto parts = split_at(line, ", which exceeds ");
  if (parts) {
    const std::string_view sides = parts->before.substr(0, parts->before.rfind(" is "));
    block.failure.expression = fmt::format("{} differ by at most {}", sides, parts->after);
  }
  show_while(block, [](std::string_view text) { return contains(text, " evaluates to "); });
}

// even(3) evaluates to false, where
void read_predicate(Block& block) {
  const auto parts = split_at(block.take(), " evaluates to false");
  block.failure.expression = parts->before;
  show_while(block, [](std::string_view text) { return contains(text, " evaluates to "); });
}

void read_death(Block& block) {
  block.failure.expression = block.take();
  while (!block.done()) {
    const std::string_view line = block.take();
    block.message.add_line(line, !line.starts_with("[  DEATH   ]"));
  }
}

void read_failed(Block& block) {
  block.take();
}

// C++ exception with description "disk full" thrown in the test body.
void read_exception(Block& block) {
  block.failure.kind = FailureKind::exception;
  while (!block.done()) {
    std::string_view line = block.take();
    consume(line, "C++ exception with description ");
    block.message.say(line);
    if (line.ends_with('.') && contains(line, " thrown in ")) break;
  }
}

void read_call_count(Block& block) {
  const auto parts = split_at(block.take(), "match ");
  std::string_view expected = parts ? parts->after : "";
  consume_end(expected, "...");
  block.failure.expression = expected;
  block.message.say("called the wrong number of times");
  while (!block.done()) block.message.show(block.take());
}

// The arguments are values; the name of the function is what identifies the call.
void read_mock_call(Block& block) {
  block.message.say(block.take());
  while (!block.done()) {
    std::string_view line = block.take();
    block.message.show(line);
    line = trim(line);
    if (block.failure.expression.empty() && consume(line, "Function call: "))
      block.failure.expression = line.substr(0, line.find('('));
  }
}

struct Shape {
  std::string_view start;
  std::string_view part;
  void (*read)(Block& block);
};

constexpr std::array shapes{
    Shape{"Expected equality of these values:", "", read_equality},
    Shape{"Value of: ", "", read_value_of},
    Shape{"Expected: (", ", actual: ", read_comparison},
    Shape{"Expected: ", "", read_expectation},
    Shape{"The difference between ", ", which exceeds ", read_difference},
    Shape{"Death test: ", "", read_death},
    Shape{"Failed", "", read_failed},
    Shape{"C++ exception with description ", "", read_exception},
    Shape{"Unknown C++ exception thrown ", "", read_exception},
    Shape{"Actual function call count doesn't match ", "", read_call_count},
    Shape{"Unexpected mock function call", "", read_mock_call},
    Shape{"Uninteresting mock function call", "", read_mock_call},
    Shape{"Mock function called more times than expected", "", read_mock_call},
    Shape{"", " evaluates to false", read_predicate},
};

void read_block(Block& block) {
  while (!block.done() && trim(block.line()).empty()) ++block.next;
  if (block.done()) return;
  for (const Shape& shape : shapes) {
    if (!block.line().starts_with(shape.start) || !contains(block.line(), shape.part)) continue;
    shape.read(block);
    break;
  }
  read_authors_text(block);
}

Failure take_failure(LineReader& in, Place place) {
  Block block;
  block.failure.kind = FailureKind::assertion;
  block.failure.file = std::move(place.file);
  block.failure.line = place.line;
  for (; !in.done() && !ends_block(in.line()) && block.lines.size() < most_block_lines;
       in.advance())
    block.lines.push_back(in.line());
  read_block(block);
  block.failure.message = std::move(block.message).text();
  return std::move(block.failure);
}

bool finished(std::string_view text) {
  return has_line_starting(text, "[  PASSED  ] ");
}

bool ran_nothing(std::string_view text) {
  return has_line_starting(text, "[==========] Running 0 tests") &&
         !has_line_starting(text, "[ RUN      ]");
}

// What a test prints may look like a summary too: the last one is GoogleTest's own.
bool passed_none(std::string_view text) {
  constexpr std::string_view summary = "[  PASSED  ] ";
  const size_t last = text.rfind(summary);
  return last != std::string_view::npos && text.substr(last + summary.size()).starts_with("0 ");
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

// What a test prints may come before GoogleTest's words, so only beginnings, which follow
// a line of its own, have to be at the start of a line.
bool broke_off(std::string_view text) {
  constexpr std::string_view banner = "[==========] Running ";
  const size_t last = text.rfind(banner);
  if (last == text.npos) return false;
  const std::string_view rest = text.substr(last + banner.size());
  if (contains(rest, "[==========] ") || contains(rest, "[  PASSED  ] ")) return false;
  const size_t begun = count_of(rest, "\n[ RUN      ] ");
  size_t ended = 0;
  for (const auto* mark : {"[       OK ] ", "[  FAILED  ] ", "[  SKIPPED ] "})
    ended += count_of(rest, mark);
  return begun > ended || fmt::format("{}", begun) != leading_digits(rest);
}

std::optional<std::string> skip_reason(std::string_view text) {
  if (!has_line_starting(text, "[  SKIPPED ] ") || !passed_none(text)) return std::nullopt;
  std::string reason;
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = in.line();
    if (!consume_end(line, ": Skipped") || !source_line_at_end(line)) continue;
    for (in.advance(); !in.done() && !ends_block(in.line()); in.advance())
      (reason += ' ') += trim(in.line());
    break;
  }
  return std::string(trim(reason));
}

}  // namespace

std::vector<Failure> parse_gtest_failures(std::string_view text) {
  std::vector<Failure> failures;
  LineReader in(text);
  while (!in.done() && failures.size() < most_failures) {
    auto place = failure_place(in.line());
    in.advance();
    if (place) failures.push_back(take_failure(in, std::move(*place)));
  }
  return failures;
}

const FrameworkOutput gtest_output{Framework::gtest, parse_gtest_failures, finished,
                                   ran_nothing,      skip_reason,          broke_off};

}  // namespace unflake
