#include "trace/pass_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/cmake_regex.h"
#include "util/text.h"

namespace unflake {
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
