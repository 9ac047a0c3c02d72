#include "symbols/lookup.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "symbols/names.h"
#include "util/text.h"

namespace unflake {
namespace {

struct Declared {
  uint64_t start = 0;
  uint64_t size = 0;
  std::optional<SourcePlace> place;
  const char* name = nullptr;
};

// Ordered by start. Of several copies of an inline function the first unit's is the one that the
// linker kept.
std::vector<Declared> declared_functions(const Units& units, SourceLines& lines) {
  std::vector<Declared> found;
  units.visit_code([&](const Unit&, const UnitCode& code) {
    for (CompiledFunction function : code.functions) {
      const char* linkage = linkage_name(&function.die);
      const char* name = linkage != nullptr ? linkage : ::dwarf_diename(&function.die);
      found.push_back(
          {function.low, function.high - function.low, lines.declaration(&function.die), name});
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Declared& a, const Declared& b) { return a.start < b.start; });
  return found;
}

void declare(Function& function, const Declared& declared, const SourceLines& lines) {
  if (declared.place) {
    function.file = lines.file_name(declared.place->file);
    function.line = declared.place->line;
  }
  if (function.mangled.empty() && declared.name != nullptr) {
    function.mangled = declared.name;
    function.name = demangle(declared.name);
  }
}

Function from_symbol(const Symbol& symbol) {
  Function function;
  function.mangled = symbol.name;
  function.name = demangle(symbol.name);
  function.start = symbol.start;
  function.size = symbol.size;
  return function;
}

}  // namespace

std::vector<Function> list_functions(const SymbolTable& symbols, const Units& units,
                                     SourceLines& lines) {
  std::vector<Function> functions;
  functions.reserve(symbols.symbols().size());
  for (const Symbol& symbol : symbols.symbols()) functions.push_back(from_symbol(symbol));
  const size_t known = functions.size();
  size_t next = 0;
  uint64_t end = 0;
  for (const Declared& declared : declared_functions(units, lines)) {
    while (next < known && functions[next].start + functions[next].size <= declared.start) ++next;
    if (next < known && functions[next].start == declared.start) {
      if (functions[next].file.empty()) declare(functions[next], declared, lines);
      continue;
    }
    const uint64_t limit = next < known ? functions[next].start : UINT64_MAX;
    if (declared.start >= limit || declared.start < end) continue;
    Function function;
    function.start = declared.start;
    function.size = std::min(declared.size, limit - declared.start);
    end = function.start + function.size;
    declare(function, declared, lines);
    functions.push_back(std::move(function));
  }
  std::stable_sort(functions.begin(), functions.end(),
                   [](const Function& a, const Function& b) { return a.start < b.start; });
  return functions;
}

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

// As accesses to memory name theirs: nothing else is certain to be one function.
std::vector<const Function*> functions_mangled_as(const Image& image, std::string_view name) {
  std::vector<const Function*> found;
  for (const Function& function : image.functions())
    if (function.mangled == name) found.push_back(&function);
  return found;
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
  if (name.starts_with("_Z")) matches.functions = functions_mangled_as(image, name);
  if (unresolved()) matches = select(named, is_exact);
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
// line got into it.
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

namespace {

class Collector {
 public:
  Collector(const Image::FileFilter& filter, const Units& units, SourceLines& lines)
      : filter_(filter), units_(units), lines_(lines) {}

  std::vector<Extent> collect() {
    units_.visit_code([&](const Unit& unit, const UnitCode& code) {
      for (const CompiledFunction& function : code.functions)
        if (units_.find(function.low) == &unit) add(code, function);
    });
    return merge_extents(std::move(extents_));
  }

 private:
  bool is_selected(Dwarf_Die die) {
    const std::optional<SourcePlace> place = lines_.declaration(&die);
    if (!place) return false;
    const auto [known, is_new] = selected_.emplace(place->file, false);
    if (is_new) known->second = filter_(lines_.file_name(place->file));
    return known->second;
  }

  void add(const UnitCode& code, const CompiledFunction& function) {
    if (!is_selected(function.die)) return;
    uint64_t from = function.low;
    for (const Extent& other : inlined_from_elsewhere(code, function)) {
      if (other.start > from) extents_.push_back({from, other.start - from});
      from = std::max(from, other.start + other.size);
    }
    if (from < function.high) extents_.push_back({from, function.high - from});
  }

  std::vector<Extent> inlined_from_elsewhere(const UnitCode& code,
                                             const CompiledFunction& function) {
    std::vector<Extent> others;
    for (uint32_t i = 0; i < function.inlined_count; ++i) {
      const InlinedCall& call = code.inlined[function.first_inlined + i];
      const uint64_t low = std::max(call.low, function.low);
      const uint64_t high = std::min(call.high, function.high);
      if (low < high && !is_selected(call.die)) others.push_back({low, high - low});
    }
    return merge_extents(std::move(others));
  }

  const Image::FileFilter& filter_;
  const Units& units_;
  SourceLines& lines_;
  std::unordered_map<uint32_t, bool> selected_;  // by file
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<Extent> collect_code_from(const Image::FileFilter& filter, const Units& units,
                                      SourceLines& lines) {
  return Collector(filter, units, lines).collect();
}

std::vector<Extent> merge_extents(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.start < b.start; });
  std::vector<Extent> merged;
  for (const Extent& extent : extents) {
    if (merged.empty() || extent.start > merged.back().start + merged.back().size) {
      merged.push_back(extent);
      continue;
    }
    Extent& last = merged.back();
    last.size = std::max(last.start + last.size, extent.start + extent.size) - last.start;
  }
  return merged;
}

}  // namespace unflake
