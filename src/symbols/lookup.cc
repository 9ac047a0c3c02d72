#include "symbols/dwarf.h"

#include <dwarf.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "util/text.h"

namespace unflake {
namespace {

constexpr int deepest_declaration = 200;
constexpr int longest_chain = 32;  // of types

std::optional<Dwarf_Die> type_of(Dwarf_Die die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (::dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr ||
      ::dwarf_formref_die(&attribute, &type) == nullptr)
    return std::nullopt;
  return type;
}

uint64_t size_of(Dwarf_Die type) {
  Dwarf_Word size = 0;
  return ::dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

std::string_view name_of(Dwarf_Die die) {
  const char* name = ::dwarf_diename(&die);
  return name != nullptr ? name : "";
}

bool is_other_name(int tag) {
  return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type;
}

bool is_compound(int tag) {
  return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

// As the standard libraries call them.
bool is_atomic_class(std::string_view name) {
  return name.starts_with("atomic<") || name == "atomic_flag" || name.starts_with("__atomic_base<");
}

// The place of a variable in the program's memory, when it has one.
std::optional<uint64_t> fixed_place(Dwarf_Die die) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (::dwarf_attr_integrate(&die, DW_AT_location, &attribute) == nullptr ||
      ::dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1)
    return std::nullopt;
  if (operations[0].atom == DW_OP_addr) return operations[0].number;
  Dwarf_Attribute resolved;
  Dwarf_Addr address = 0;
  if (operations[0].atom != DW_OP_addrx ||
      ::dwarf_getlocation_attr(&attribute, operations, &resolved) != 0 ||
      ::dwarf_formaddr(&resolved, &address) != 0)
    return std::nullopt;
  return address;
}

// What is at an offset in a value of a type: the member, the element.
class Part {
 public:
  Part(Dwarf_Die type, uint64_t offset) : type_(type), offset_(offset) {
    for (int i = 0; i < longest_chain && step(); ++i) continue;
  }

  const std::string& path() const { return path_; }
  Dwarf_Die type() const { return type_; }
  bool is_atomic() const { return is_atomic_; }

 private:
  // False: there is nothing smaller.
  bool step() {
    const int tag = ::dwarf_tag(&type_);
    is_atomic_ = tag == DW_TAG_atomic_type || (is_compound(tag) && is_atomic_class(name_of(type_)));
    if (is_atomic_) return false;
    if (is_other_name(tag)) return go_to(type_of(type_));
    if (tag == DW_TAG_array_type) return go_to_element();
    return is_compound(tag) && go_to_member();
  }

  bool go_to(std::optional<Dwarf_Die> type) {
    if (type) type_ = *type;
    return type.has_value();
  }

  bool go_to_element() {
    const auto element = type_of(type_);
    const uint64_t size = element ? size_of(*element) : 0;
    if (size == 0) return false;
    path_ += "[" + std::to_string(offset_ / size) + "]";
    offset_ %= size;
    return go_to(element);
  }

  bool go_to_member() {
    Dwarf_Die child;
    if (::dwarf_child(&type_, &child) != 0) return false;
    do {
      const int tag = ::dwarf_tag(&child);
      if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
      if (enter(child)) return true;
    } while (::dwarf_siblingof(&child, &child) == 0);
    return false;
  }

  bool enter(Dwarf_Die member) {
    Dwarf_Attribute attribute;
    Dwarf_Word start = 0;
    if (::dwarf_attr(&member, DW_AT_data_member_location, &attribute) != nullptr &&
        ::dwarf_formudata(&attribute, &start) != 0)
      return false;
    const auto type = type_of(member);
    if (!type || offset_ < start || offset_ - start >= size_of(*type)) return false;
    if (::dwarf_tag(&member) == DW_TAG_member && !name_of(member).empty())
      path_ += "." + std::string(name_of(member));
    offset_ -= start;
    return go_to(type);
  }

  Dwarf_Die type_;
  uint64_t offset_;
  std::string path_;
  bool is_atomic_ = false;
};

std::string text_of_type(std::optional<Dwarf_Die> type) {
  std::string around;
  for (int i = 0; i < longest_chain && type; ++i) {
    const std::string name(name_of(*type));
    const int tag = ::dwarf_tag(&*type);
    if (!name.empty()) return without_noise(name) + around;
    if (tag == DW_TAG_pointer_type) around = "*" + around;
    if (tag == DW_TAG_array_type) around += "[]";
    type = type_of(*type);
  }
  return "";
}

template <class Entry>
const Entry* entry_around(const std::vector<Entry>& all, uint64_t address) {
  auto after = std::ranges::upper_bound(all, address, {}, &Entry::start);
  if (after == all.begin()) return nullptr;
  const Entry& found = *--after;
  return address - found.start < std::max<uint64_t>(found.size, 1) ? &found : nullptr;
}

}  // namespace

Variables::Variables(const Units& units, const ElfFile& file, const ElfFile* debug) {
  for (const Unit& unit : units.all()) {
    last_seen_ = 0;
    read(units.root_of(unit), 0);
  }
  read_symbols(file);
  if (debug != nullptr) read_symbols(*debug);
  std::ranges::stable_sort(typed_, {}, &Typed::start);
  std::ranges::stable_sort(named_, {}, &Named::start);
}

void Variables::read(Dwarf_Die parent, int nesting) {
  Dwarf_Die die;
  if (nesting > deepest_declaration || ::dwarf_child(&parent, &die) != 0) return;
  do {
    // A broken file can name a sibling that was seen already; walking it again would never end.
    if (::dwarf_dieoffset(&die) <= last_seen_) return;
    last_seen_ = ::dwarf_dieoffset(&die);
    switch (::dwarf_tag(&die)) {
      case DW_TAG_variable:
        add(die);
        break;
      case DW_TAG_namespace:
      case DW_TAG_subprogram:
      case DW_TAG_lexical_block:
        read(die, nesting + 1);
        break;
      default:
        break;
    }
  } while (::dwarf_siblingof(&die, &die) == 0);
}

void Variables::add(Dwarf_Die die) {
  const auto place = fixed_place(die);
  const auto type = type_of(die);
  if (place && *place != 0 && type) typed_.push_back({*place, size_of(*type), die});
}

void Variables::read_symbols(const ElfFile& file) {
  for (const uint32_t table : {SHT_SYMTAB, SHT_DYNSYM})
    visit_symbols(file, table, [&](const GElf_Sym& symbol, const char* name) {
      if (GELF_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF && *name != 0)
        named_.push_back({symbol.st_value, symbol.st_size, name});
    });
}

std::optional<Variable> Variables::at(uint64_t address, DieNames& names) const {
  if (const Typed* typed = entry_around(typed_, address)) {
    const Part part(*type_of(typed->die), address - typed->start);
    return Variable{names.name_of(typed->die) + part.path(), text_of_type(part.type()),
                    part.is_atomic()};
  }
  const Named* named = entry_around(named_, address);
  if (named == nullptr) return std::nullopt;
  return Variable{without_noise(demangle(named->name)), "", false};
}

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

// By qualified name; only those that have the wanted text in them, which is quick to see. Lambdas
// are called something else there.
NamedFunctions functions_with(const Image& image, std::string_view part) {
  NamedFunctions found;
  if (part.starts_with('{')) part = "";
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
