#include <algorithm>
#include <array>

#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::array source_endings{".c",   ".cc",  ".cpp", ".cxx", ".c++", ".C",  ".h",  ".hh",
                                    ".hpp", ".hxx", ".inl", ".ipp", ".m",   ".mm", ".rs", ".py",
                                    ".sh",  ".lua", ".js",  ".ts",  ".go",  ".pl", ".rb"};

constexpr std::array words_of_a_check{"fail",     "Fail",   "FAIL",   "assert", "Assert",
                                      "ASSERT",   "expect", "Expect", "EXPECT", "not ok",
                                      "mismatch", "CHECK",  "REQUIRE"};

// Where it stands in a line, and what comes before and after it.
struct PlaceInLine {
  SourceLine place;
  std::string_view before, after;
};

bool is_source(std::string_view file) {
  return std::ranges::any_of(source_endings, [&](std::string_view ending) {
    return file.size() > ending.size() && file.ends_with(ending);
  });
}

// "dns.c:12", "dns.c(12)" or "dns.c:12:34", wherever in the line.
std::optional<PlaceInLine> place_in(std::string_view line) {
  for (size_t at = line.find_first_of(":("); at != std::string_view::npos;
       at = line.find_first_of(":(", at + 1)) {
    std::string_view file = line.substr(0, at);
    const std::string_view digits = leading_digits(line.substr(at + 1));
    if (digits.empty() || digits.size() > 7 || !is_source(file)) continue;
    file.remove_prefix(file.find_last_of(" \t[('\"<=") + 1);
    size_t end = at + 1 + digits.size();
    if (line[at] == '(' && end < line.size() && line[end] == ')') ++end;
    int number = 0;
    for (const char digit : digits) number = 10 * number + (digit - '0');
    return PlaceInLine{{file, number},
                       line.substr(0, static_cast<size_t>(file.data() - line.data())),
                       line.substr(end)};
  }
  return std::nullopt;
}

bool tells_of_a_check(std::string_view text) {
  return std::ranges::any_of(words_of_a_check,
                             [&](std::string_view word) { return contains(text, word); });
}

std::string_view without_punctuation(std::string_view text) {
  while (!text.empty() && std::string_view(" \t:-,]").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  return trim(text);
}

// Loggers and compilers name places, too. Two frameworks write theirs as a compiler would.
bool may_be_check(std::string_view line, const PlaceInLine& found) {
  if (found.after.starts_with(": error: Failure")) return true;
  for (const auto* of_compiler : {": error: ", ": warning: ", ": note: ", ": fatal error: "})
    if (contains(found.after, of_compiler)) return false;
  return !looks_like_log(line) && (tells_of_a_check(found.before) || tells_of_a_check(found.after));
}

std::optional<Failure> check_in(std::string_view line) {
  const auto found = place_in(line);
  if (!found || !may_be_check(line, *found)) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = found->place.file;
  failure.line = found->place.line;
  const std::string_view said = without_punctuation(found->after);
  failure.message = said.empty() ? without_punctuation(found->before) : said;
  return failure;
}

// FAIL!  : Server::stops() Compared values are not the same /    Loc: [server.cpp(12)]
std::optional<Failure> qt_check(LineReader in) {
  std::string_view line = in.line();
  if (!consume(line, "FAIL!  : ")) return std::nullopt;
  for (size_t lines = 0; lines < 10 && !in.done(); ++lines, in.advance()) {
    std::string_view loc = trim(in.line());
    if (!consume(loc, "Loc: [") || !consume_end(loc, "]")) continue;
    const auto place = source_line_at_end(loc);
    if (!place) return std::nullopt;
    Failure failure;
    failure.kind = FailureKind::assertion;
    failure.file = place->file;
    failure.line = place->line;
    failure.message = line;
    return failure;
  }
  return std::nullopt;
}

// File: /src/queue.c /   Line: 12 /   Test: size == 2
std::optional<Failure> spelled_check(LineReader in) {
  std::string_view file = trim(in.line());
  if (!consume(file, "File: ") || !is_source(file)) return std::nullopt;
  in.advance();
  std::string_view number = in.done() ? "" : trim(in.line());
  if (!consume(number, "Line: ")) return std::nullopt;
  const std::string place_text = std::string(file) + ":" + std::string(number);
  const auto place = source_line_at_end(place_text);
  if (!place) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = place->file;
  failure.line = place->line;
  in.advance();
  std::string_view check = in.done() ? "" : trim(in.line());
  if (consume(check, "Test: ")) failure.expression = check;
  return failure;
}

}  // namespace

std::optional<Failure> plain_check_in(const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    for (LineReader in(text); !in.done(); in.advance()) {
      if (auto found = qt_check(in)) return found;
      if (auto found = spelled_check(in)) return found;
      if (auto found = check_in(in.line())) return found;
    }
  return std::nullopt;
}

}  // namespace unflake
