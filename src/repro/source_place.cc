#include "repro/relocation.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <set>
#include <tuple>

#include "util/text.h"

namespace unflake {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// All braces and empty lines are alike.
bool tells_something(const std::string& text) {
  return std::ranges::count_if(text, is_word) >= 3;
}

bool same_telling(const std::string& a, const std::string& b) {
  return a == b && tells_something(a);
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (is_word(c)) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

// At least half of the words of two lines are the same.
bool are_similar(const std::string& a, const std::string& b) {
  const std::set<std::string> of_a = words_of(a), of_b = words_of(b);
  const auto shared = static_cast<size_t>(
      std::ranges::count_if(of_a, [&](const std::string& word) { return of_b.contains(word); }));
  return shared > 0 && 2 * shared >= of_a.size() + of_b.size() - shared;
}

// What is alike, the strongest evidence first.
enum class Evidence { none, same_text, edited_line, same_line_elsewhere, same_line };

struct Likeness {
  Evidence evidence = Evidence::none;
  int neighbours = 0;
  bool same_file = false;
  bool same_depth = false;  // as many lines into the function
  bool same_number = false;

  auto operator<=>(const Likeness&) const = default;
};

bool is_entry(const SiteName& site) {
  return site.api.empty() && site.file.empty();
}

Evidence evidence_of(const SiteContext& was, const SiteContext& is, int neighbours) {
  const bool same_function = !was.function.empty() && was.function == is.function;
  const bool unknown = was.text.empty() || is.text.empty();
  const bool same_text = !unknown && was.text == is.text;
  if (same_function && same_text) return Evidence::same_line;
  const bool related =
      !was.function.empty() && unqualified(was.function) == unqualified(is.function);
  if (same_text && tells_something(was.text) && (neighbours > 0 || related))
    return Evidence::same_line_elsewhere;
  if (same_function && (unknown || neighbours == 2 || are_similar(was.text, is.text)))
    return Evidence::edited_line;
  return same_text && tells_something(was.text) ? Evidence::same_text : Evidence::none;
}

Likeness likeness_of(const SiteInSource& wanted, const SiteInSource& candidate) {
  const SiteContext &was = wanted.context, &is = candidate.context;
  Likeness like;
  like.neighbours =
      same_telling(was.text_before, is.text_before) + same_telling(was.text_after, is.text_after);
  like.evidence = evidence_of(was, is, like.neighbours);
  const bool renamed = like.evidence == Evidence::none && is_entry(wanted.name) &&
                       like.neighbours > 0 && are_similar(was.text, is.text);
  if (renamed) like.evidence = Evidence::edited_line;
  like.same_file = wanted.name.file == candidate.name.file;
  like.same_depth =
      was.lines_into_function >= 0 && was.lines_into_function == is.lines_into_function;
  like.same_number = wanted.name.nth == candidate.name.nth;
  return like;
}

uint64_t distance(const SiteInSource& a, const SiteInSource& b) {
  const auto apart = [](auto x, auto y) { return static_cast<uint64_t>(x > y ? x - y : y - x); };
  if (a.name.line == 0 || b.name.line == 0) return apart(a.name.offset, b.name.offset);
  if (a.context.lines_into_function >= 0 && b.context.lines_into_function >= 0)
    return apart(a.context.lines_into_function, b.context.lines_into_function);
  return apart(a.name.line, b.name.line);
}

bool is_unchanged(const SiteInSource& wanted, const SiteInSource& candidate) {
  const auto same_or_unknown = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() || a == b;
  };
  return to_string(wanted.name) == to_string(candidate.name) &&
         same_or_unknown(wanted.context.function, candidate.context.function) &&
         same_or_unknown(wanted.context.text, candidate.context.text);
}

FoundPlace::Kind kind_of(const SiteInSource& wanted, const SiteInSource& found) {
  const bool edited = !wanted.context.text.empty() && !found.context.text.empty() &&
                      wanted.context.text != found.context.text;
  return edited ? FoundPlace::Kind::edited : FoundPlace::Kind::moved;
}

}  // namespace

std::string unqualified(const std::string& function) {
  const size_t separator = function.rfind("::");
  return separator == std::string::npos ? function : function.substr(separator + 2);
}

SiteContext context_at(const CodeView& code, const std::string& image, const std::string& file,
                       int line, const std::string& function) {
  SiteContext context;
  context.function = function;
  int nearest = std::numeric_limits<int>::max();
  const auto [first, last] = code.functions(image).equal_range(function);
  for (auto place = first; place != last; ++place)
    if (place->second.file == file && place->second.line <= line)
      nearest = std::min(nearest, line - place->second.line);
  if (nearest != std::numeric_limits<int>::max()) context.lines_into_function = nearest;
  const CodeView::Lines& lines = code.source(file);
  const auto text = [&](int number) {
    const bool is_there = number >= 1 && number <= static_cast<int>(lines.size());
    return is_there ? std::string(trim(lines[static_cast<size_t>(number) - 1])) : "";
  };
  context.text = text(line);
  context.text_before = text(line - 1);
  context.text_after = text(line + 1);
  return context;
}

std::optional<FoundPlace> find_place(const SiteInSource& wanted,
                                     const std::vector<SiteInSource>& candidates) {
  Likeness best;
  std::vector<size_t> likely;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (is_unchanged(wanted, candidates[i])) return FoundPlace{FoundPlace::Kind::unchanged, i, {}};
    const Likeness like = likeness_of(wanted, candidates[i]);
    if (like.evidence == Evidence::none || like < best) continue;
    if (best < like) likely.clear();
    best = like;
    likely.push_back(i);
  }
  // The same words in another function mean something only when no other place has them.
  if (likely.empty() || (best.evidence == Evidence::same_text && likely.size() > 1))
    return std::nullopt;
  const auto nearest = std::ranges::min_element(
      likely, {}, [&](size_t i) { return distance(wanted, candidates[i]); });
  FoundPlace found{kind_of(wanted, candidates[*nearest]), *nearest, {}};
  likely.erase(nearest);
  if (!likely.empty()) found.kind = FoundPlace::Kind::ambiguous;
  found.as_likely = std::move(likely);
  return found;
}

}  // namespace unflake
