#include "trace/cmake_regex.h"

#include <fmt/format.h>

#include <algorithm>

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

constexpr const char* any_text = "([^x]|x)*";  // a dot would not match a zero byte

// Behind other text glibc lets ^ match after a line feed, whatever it was told: in pattern and text
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
  auto from_start =
      alone ? compile_posix(without_line_feeds(any_text + ("(" + posix + ")"))) : alone.error();
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

}  // namespace unflake
