#include <array>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_block_lines = 60;

struct Heading {
  SourceLine place;
  std::string_view text;
};

// file:12: ERROR: ... or file(12): FATAL ERROR: ...
std::optional<Heading> heading_in(std::string_view line) {
  for (const auto* mark : {": ERROR: ", ": FATAL ERROR: "}) {
    const auto parts = split_at(line, mark);
    if (!parts) continue;
    const auto place = source_line_at_end(parts->before);
    if (place) return Heading{*place, parts->after};
  }
  return std::nullopt;
}

// How doctest says what became of an expression, or of the whole test case.
struct Verdict {
  std::string_view mark;
  FailureKind kind;
  bool says_more;  // what follows the mark tells one failure from another
};

constexpr std::array verdicts{
    Verdict{" is NOT correct!", FailureKind::assertion, false},
    Verdict{" THREW exception: ", FailureKind::exception, true},
    Verdict{" CRASHED: ", FailureKind::signal, true},
    Verdict{" did NOT throw at all!", FailureKind::assertion, true},
    Verdict{" threw a DIFFERENT exception", FailureKind::assertion, true},
};

bool is_check(std::string_view text) {
  return text.ends_with(')') && contains(text, "( ");
}

void read_heading(std::string_view text, Failure& failure, Message& message) {
  for (const Verdict& verdict : verdicts) {
    const auto parts = split_at(text, verdict.mark);
    if (!parts || !(is_check(parts->before) || parts->before == "test case")) continue;
    failure.kind = verdict.kind;
    if (is_check(parts->before)) failure.expression = parts->before;
    if (!verdict.says_more) return;
    const bool mark_tells = verdict.kind == FailureKind::assertion;
    message.say(mark_tells ? text.substr(parts->before.size()) : parts->after);
    return;
  }
  message.say(text);
}

// "  values:" and CAPTUREs are values, "  logged:" holds the author's INFOs.
void read_details(LineReader& in, Message& message) {
  bool in_values = false;
  for (size_t lines = 0; !in.done() && !in.line().empty() && lines < most_block_lines; ++lines) {
    std::string_view line = in.line();
    if (line.starts_with("  values: ")) in_values = true;
    if (consume(line, "  logged: ")) in_values = false;
    message.add_line(line, !in_values && !contains(line, " := "));
    in.advance();
  }
}

Failure take_failure(LineReader& in, const Heading& heading) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = heading.place.file;
  failure.line = heading.place.line;
  Message message;
  read_heading(heading.text, failure, message);
  read_details(in, message);
  failure.message = std::move(message).text();
  return failure;
}

std::optional<Failure> failure_without_place(std::string_view line) {
  Failure failure;
  failure.message = line;
  failure.kind = FailureKind::unexpected_pass;
  if (line.starts_with("Should have failed but didn't!")) return failure;
  if (line.starts_with("Didn't fail exactly ")) return failure;
  failure.kind = FailureKind::timeout;
  if (line.starts_with("Test case exceeded time limit of ")) return failure;
  return std::nullopt;
}

bool finished(std::string_view text) {
  return has_line_starting(text, "[doctest] Status: ");
}

bool ran_nothing(std::string_view text) {
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = in.line();
    if (consume(line, "[doctest] test cases:") && trim(line).starts_with("0 |")) return true;
  }
  return false;
}

bool broke_off(std::string_view text) {
  const size_t begin = text.rfind("[doctest] run with \"--help\" for options");
  if (begin == text.npos) return false;
  const std::string_view rest = text.substr(begin);
  return !contains(rest, "[doctest] Status: ") && !contains(rest, "[doctest] test cases:");
}

}  // namespace

std::vector<Failure> parse_doctest_failures(std::string_view text) {
  std::vector<Failure> failures;
  LineReader in(text);
  while (!in.done() && failures.size() < most_failures) {
    const auto heading = heading_in(in.line());
    const auto placeless = failure_without_place(in.line());
    in.advance();
    if (heading) failures.push_back(take_failure(in, *heading));
    if (placeless) failures.push_back(*placeless);
  }
  return failures;
}

const FrameworkOutput doctest_output{
    Framework::doctest, parse_doctest_failures, finished, ran_nothing, nullptr, broke_off};

}  // namespace unflake
