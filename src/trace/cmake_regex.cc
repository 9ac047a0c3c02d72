#include "trace/cmake_regex.h"

#include <fmt/format.h>

#include "trace/scan.h"
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

Result<CMakeRegex> CMakeRegex::compile(const std::string& pattern) {
  auto compiled = std::make_unique<regex_t>();
  const int failed = regcomp(compiled.get(), posix_from_cmake(pattern).c_str(), REG_EXTENDED);
  if (failed == 0) return CMakeRegex(std::unique_ptr<regex_t, Free>(compiled.release()));
  char reason[200];
  regerror(failed, compiled.get(), reason, sizeof reason);
  return usage_error(
      fmt::format("'{}' is not a regular expression: {}", printable(shorten(pattern, 200)), reason),
      "", "correct the test's properties in CMakeLists.txt");
}

std::optional<CMakeRegex::Match> CMakeRegex::find(std::string_view text, bool cut_at_start,
                                                  bool cut_at_end) const {
  regmatch_t range[1];
  range[0].rm_so = 0;
  range[0].rm_eo = static_cast<regoff_t>(text.size());
  const int flags = REG_STARTEND | (cut_at_start ? REG_NOTBOL : 0) | (cut_at_end ? REG_NOTEOL : 0);
  if (regexec(regex_.get(), text.data() ? text.data() : "", 1, range, flags) != 0)
    return std::nullopt;
  return Match{static_cast<size_t>(range[0].rm_so), static_cast<size_t>(range[0].rm_eo)};
}

}  // namespace unflake
