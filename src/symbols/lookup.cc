#include "symbols/lookup.h"

#include <algorithm>
#include <map>
#include <set>

#include "symbols/demangle.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_suggestions = 5;

// Parts that the compiler has split off are not what is called by the name.
bool is_split_off(const Function& function) {
  return function.mangled.find(".cold") != std::string::npos ||
         function.mangled.find(".part.") != std::string::npos;
}

std::string without_arguments(std::string_view name) {
  if (name.find("operator") != std::string_view::npos) return std::string(name);
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    if (c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == '>' && depth > 0) --depth;
  }
  return plain;
}

bool ends_with_part(std::string_view whole, std::string_view end, std::string_view separator) {
  if (!whole.ends_with(end)) return false;
  const std::string_view before = whole.substr(0, whole.size() - end.size());
  return before.empty() || end.empty() || before.ends_with(separator);
}

std::string_view last_part(std::string_view name) {
  const size_t separator = name.rfind("::");
  return separator == std::string_view::npos ? name : name.substr(separator + 2);
}

using NamedFunctions = std::map<std::string, std::vector<const Function*>>;

// By qualified name; only those that have the wanted text in them, which is quick to see.
NamedFunctions functions_with(const Image& image, std::string_view part) {
  NamedFunctions found;
  for (const Function& function : image.functions())
    if (function.name.find(part) != std::string::npos && !is_split_off(function))
      found[qualified_name(function.name)].push_back(&function);
  return found;
}

// The functions whose name passes; they must have the same name without template arguments.
template <class Passes>
FunctionMatches select(const NamedFunctions& named, Passes passes) {
  FunctionMatches matches;
  std::set<std::string> names;
  for (const auto& [name, functions] : named) {
    if (!passes(name)) continue;
    names.insert(without_arguments(name));
    matches.functions.insert(matches.functions.end(), functions.begin(), functions.end());
  }
  if (names.size() > 1) {
    matches.functions.clear();
    for (const std::string& name : names)
      if (matches.suggestions.size() < most_suggestions) matches.suggestions.push_back(name);
  }
  std::sort(matches.functions.begin(), matches.functions.end(),
            [](const Function* a, const Function* b) { return a->start < b->start; });
  return matches;
}

std::vector<std::string> similar_functions(const Image& image, std::string_view wanted) {
  std::map<std::string, std::string> by_last_part;
  for (const Function& function : image.functions()) {
    if (function.name.empty() || is_split_off(function)) continue;
    const std::string name = without_arguments(qualified_name(function.name));
    by_last_part.emplace(last_part(name), name);
  }
  std::vector<std::string> parts;
  for (const auto& [part, name] : by_last_part) parts.push_back(part);
  std::vector<std::string> names;
  for (const std::string& part : nearest(last_part(wanted), parts, most_suggestions))
    names.push_back(by_last_part[part]);
  return names;
}

}  // namespace

FunctionMatches find_functions(const Image& image, std::string_view name) {
  if (name.ends_with("()") && !name.ends_with("operator()")) name.remove_suffix(2);
  const std::string plain = without_arguments(name);
  const NamedFunctions named = functions_with(image, last_part(plain));
  const auto is_exact = [&](const std::string& other) { return other == name; };
  const auto is_end = [&](const std::string& other) { return ends_with_part(other, name, "::"); };
  const auto is_plain = [&](const std::string& other) { return without_arguments(other) == plain; };
  const auto is_plain_end = [&](const std::string& other) {
    return ends_with_part(without_arguments(other), plain, "::");
  };
  FunctionMatches matches;
  const auto unresolved = [&] { return matches.functions.empty() && matches.suggestions.empty(); };
  if (name.empty()) return matches;
  matches = select(named, is_exact);
  if (unresolved()) matches = select(named, is_plain);
  if (unresolved()) matches = select(named, is_end);
  if (unresolved()) matches = select(named, is_plain_end);
  if (unresolved()) matches.suggestions = similar_functions(image, name);
  return matches;
}

namespace {

std::vector<uint32_t> files_ending_with(const Image& image, std::string_view end) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < image.files().size(); ++i) {
    if (image.files()[i] == end) return {i};
    if (ends_with_part(image.files()[i], end, "/")) found.push_back(i);
  }
  return found;
}

// What tells the copies of a line apart: the function that the linker sees, and by which calls the
// line came into it.
std::string copy_of(const std::vector<Frame>& frames) {
  std::string copy = frames.empty() ? "" : std::to_string(frames.front().function_start);
  for (size_t i = 1; i < frames.size(); ++i)
    copy += "," + frames[i].function + ":" + std::to_string(frames[i].line);
  return copy;
}

std::vector<uint64_t> first_of_each_copy(const Image& image, uint32_t file, int line) {
  std::vector<uint64_t> addresses;
  std::set<std::string> seen;
  for (const LineRow& row : image.lines())
    if (row.file == file && row.line == line &&
        seen.insert(copy_of(image.frames_at(row.address))).second)
      addresses.push_back(row.address);
  return addresses;
}

int next_line_with_code(const Image& image, uint32_t file, int line) {
  int next = 0;
  for (const LineRow& row : image.lines())
    if (row.file == file && row.line >= line && (next == 0 || row.line < next)) next = row.line;
  return next;
}

std::vector<std::string> similar_files(const Image& image, std::string_view wanted) {
  const std::vector<std::string> files(image.files().begin(), image.files().end());
  return nearest(wanted.substr(wanted.rfind('/') + 1), files, most_suggestions);
}

}  // namespace

LineMatch addresses_of_line(const Image& image, std::string_view file, int line) {
  LineMatch match;
  const std::vector<uint32_t> files = files_ending_with(image, file);
  for (const uint32_t other : files) match.suggestions.push_back(image.files()[other]);
  if (files.empty()) match.suggestions = similar_files(image, file);
  if (files.size() != 1 || file.empty()) return match;
  match.suggestions.clear();
  match.file = image.files()[files.front()];
  match.line = next_line_with_code(image, files.front(), line);
  if (match.line > 0) match.addresses = first_of_each_copy(image, files.front(), match.line);
  return match;
}

}  // namespace unflake
