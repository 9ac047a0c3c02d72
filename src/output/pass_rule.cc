#include "output/read_outcome.h"

#include <fmt/format.h>
#include <algorithm>
#include "util/text.h"

namespace unflake {
namespace {

std::string literal(char c) {
  constexpr std::string_view special = "\\^$.[]|()*+?{}";
  return special.find(c) == std::string_view::npos ? std::string(1, c) : fmt::format("\\{}", c);
}

// POSIX reads [: [. and [= inside a set; a bracket at the end of the set is only a bracket.
std::string set_from(std::string_view& rest) {
  std::string set(1, rest.front());
  rest.remove_prefix(1);
  if (consume(rest, "^")) set += '^';
  if (consume(rest, "]")) set += ']';
  bool has_bracket = false;
  while (!rest.empty() && rest.front() != ']') {
    const bool bracket = rest.front() == '[';
    has_bracket |= bracket;
    if (!bracket) set += rest.front();
    rest.remove_prefix(1);
  }
  if (has_bracket) set += '[';
  if (consume(rest, "]")) set += ']';
  return set;
}

constexpr const char* any_posix_text = "([^x]|x)*";  // a dot would not match a zero byte

// After other text glibc lets ^ match after a line feed, whatever it was told: in pattern and text
// another character takes its place.
std::string without_line_feeds(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '\v');
  return text;
}

}  // namespace

std::string posix_from_cmake(std::string_view pattern) {
  std::string posix;
  while (!pattern.empty()) {
    const char c = pattern.front();
    if (c == '[') {
      posix += set_from(pattern);
      continue;
    }
    const bool escaped = c == '\\' && pattern.size() > 1;
    if (escaped)
      posix += literal(pattern[1]);
    else if (c == '{' || c == '}')
      posix += literal(c);
    else
      posix += c;
    pattern.remove_prefix(escaped ? 2 : 1);
  }
  return posix;
}

Result<CMakeRegex::Compiled> CMakeRegex::compile_posix(const std::string& posix) {
  auto compiled = std::make_unique<regex_t>();
  const int failed = regcomp(compiled.get(), posix.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failed == 0) return Compiled(compiled.release());
  char reason[200];
  regerror(failed, compiled.get(), reason, sizeof reason);
  return usage_error(reason);
}

Result<CMakeRegex> CMakeRegex::compile(const std::string& pattern) {
  const std::string posix = posix_from_cmake(pattern);
  const auto alone = compile_posix(posix);  // `a)(b` would be right inside of parentheses
  auto from_start = alone ? compile_posix(without_line_feeds(any_posix_text + ("(" + posix + ")")))
                          : alone.error();
  if (from_start) return CMakeRegex(std::move(*from_start));
  return usage_error(fmt::format("'{}' is not a regular expression: {}",
                                 printable(shorten(pattern, 200)), from_start.error().what),
                     "", "correct the test's properties in CMakeLists.txt");
}

// A search tries the expression at each place in turn, and each try may read all of the text that
// is left. One try from the start, with "any text" in front of the expression, reads it once.
bool CMakeRegex::matches(std::string_view text, bool cut_at_start, bool cut_at_end) const {
  from_start_->not_bol = cut_at_start;
  from_start_->not_eol = cut_at_end;
  const std::string one_line = without_line_feeds(std::string(text));
  const auto length = static_cast<regoff_t>(one_line.size());
  return re_match(from_start_.get(), one_line.data(), length, 0, nullptr) >= 0;
}

namespace {

struct Hit {
  std::string pattern;
  std::string line;  // that matches; empty when it takes several
};

bool matches(const CMakeRegex& regex, const TextPiece& piece) {
  return regex.matches(piece.text, piece.cut_at_start, piece.cut_at_end);
}

std::string first_matching_line(const CMakeRegex& regex, const TextPiece& piece) {
  std::string_view rest = piece.text;
  for (bool first = true; !rest.empty(); first = false) {
    const size_t feed = std::min(rest.find('\n'), rest.size());
    const bool last = feed == rest.size();
    const std::string_view line = rest.substr(0, feed);
    if (regex.matches(line, piece.cut_at_start || !first, piece.cut_at_end || !last))
      return shorten(trim(without_escape_sequences(line)), 500);
    rest.remove_prefix(last ? feed : feed + 1);
  }
  return "";
}

Result<std::optional<Hit>> first_hit(const std::vector<std::string>& patterns,
                                     const std::vector<TextPiece>& output) {
  for (const std::string& pattern : patterns) {
    const auto regex = CMakeRegex::compile(pattern);
    if (!regex) return regex.error();
    for (const TextPiece& piece : output)
      if (matches(*regex, piece))
        return std::optional(Hit{pattern, first_matching_line(*regex, piece)});
    if (output.empty() && regex->matches("")) return std::optional(Hit{pattern, ""});
  }
  return std::optional<Hit>();
}

Failure pattern_failure(std::string expression, std::string message) {
  Failure failure;
  failure.kind = FailureKind::output_pattern;
  failure.expression = std::move(expression);
  failure.message = std::move(message);
  return failure;
}

Failure broken_pattern(const Error& error) {
  return pattern_failure("", to_string(error));
}

Failure no_pass_pattern(const PassRule& rule, const std::vector<TextPiece>& output) {
  const bool cut = std::any_of(output.begin(), output.end(),
                               [](const TextPiece& piece) { return piece.cut_at_end; });
  std::string message = "nothing in the output matches PASS_REGULAR_EXPRESSION";
  if (cut) message += "\n  the middle of the output was not kept and could not be searched";
  return pattern_failure(join(rule.pass_patterns, " or "), std::move(message));
}

Failure fail_pattern(const Hit& hit) {
  std::string message = "the output matches FAIL_REGULAR_EXPRESSION";
  if (!hit.line.empty()) message += ": " + hit.line;
  return pattern_failure(hit.pattern, std::move(message));
}

std::string skip_reason(const Hit& hit) {
  return hit.line.empty() ? "the output matches SKIP_REGULAR_EXPRESSION" : hit.line;
}

// What the patterns say against the test, whatever its exit status.
std::optional<Failure> forced_failure(const PassRule& rule, const std::vector<TextPiece>& output) {
  const auto failing = first_hit(rule.fail_patterns, output);
  if (!failing) return broken_pattern(failing.error());
  if (*failing) return fail_pattern(**failing);
  if (rule.pass_patterns.empty()) return std::nullopt;
  const auto passing = first_hit(rule.pass_patterns, output);
  if (!passing) return broken_pattern(passing.error());
  if (!*passing) return no_pass_pattern(rule, output);
  return std::nullopt;
}

Failure unexpected_pass() {
  Failure failure;
  failure.kind = FailureKind::unexpected_pass;
  failure.message = "the test passed, and WILL_FAIL says that it must not";
  return failure;
}

Judgement failed(std::optional<Failure> failure) {
  return {OutcomeKind::fail, std::move(failure), ""};
}

}  // namespace

Judgement judge(const PassRule& rule, int exit_status, const std::vector<TextPiece>& output) {
  if (rule.skip_return_code == exit_status)
    return {OutcomeKind::skipped, std::nullopt, fmt::format("exit status {}", exit_status)};
  const auto skips = first_hit(rule.skip_patterns, output);
  if (!skips) return failed(broken_pattern(skips.error()));
  if (*skips) return {OutcomeKind::skipped, std::nullopt, skip_reason(**skips)};

  auto forced = forced_failure(rule, output);
  const bool success = !forced && (exit_status == 0 || !rule.pass_patterns.empty());
  if (success != rule.will_fail) return {};
  if (rule.will_fail) return failed(unexpected_pass());
  return failed(std::move(forced));
}

}  // namespace unflake
