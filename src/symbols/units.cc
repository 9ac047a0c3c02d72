#include "symbols/dwarf.h"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "util/paths.h"

namespace unflake {
namespace {

constexpr int deepest_nesting = 200;
constexpr size_t most_ranges = 4096;

bool is_declaration(Dwarf_Die* die) {
  return ::dwarf_hasattr(die, DW_AT_declaration) != 0;
}

class Reader {
 public:
  explicit Reader(const ElfFile& file) : file_(file) {}

  UnitCode read(Dwarf_Die root) {
    walk_children(root, {});
    for (UnitScope& scope : code_.scopes)
      if (scope.parent != no_scope) scope.end = std::min(scope.end, code_.scopes[scope.parent].end);
    std::stable_sort(code_.functions.begin(), code_.functions.end(),
                     [](const auto& a, const auto& b) { return a.low < b.low; });
    return std::move(code_);
  }

 private:
  struct Place {
    uint32_t scope = no_scope;
    std::vector<InlinedCall>* calls = nullptr;  // of the function around
    uint32_t call_depth = 0;
    int nesting = 0;
  };

  void walk_children(Dwarf_Die parent, Place place) {
    Dwarf_Die child;
    if (++place.nesting > deepest_nesting || ::dwarf_child(&parent, &child) != 0) return;
    do {
      const Dwarf_Off offset = ::dwarf_dieoffset(&child);
      // A broken file can name a sibling that was seen already; walking it again would never end.
      if (any_seen_ && offset <= last_seen_) return;
      any_seen_ = true;
      last_seen_ = offset;
      const size_t scope = code_.scopes.size();
      visit(child, place);
      Dwarf_Die next;
      if (::dwarf_siblingof(&child, &next) != 0) return;
      if (scope < code_.scopes.size() && code_.scopes[scope].start == offset)
        code_.scopes[scope].end = ::dwarf_dieoffset(&next);
      child = next;
    } while (true);
  }

  void visit(Dwarf_Die& die, const Place& place) {
    switch (::dwarf_tag(&die)) {
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        return walk_scope(die, place);
      case DW_TAG_subprogram:
        if (!is_declaration(&die)) read_function(die, place);
        return;
      case DW_TAG_inlined_subroutine:
        return read_inlined(die, place);
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        return walk_children(die, place);
      default:
        return;
    }
  }

  void walk_scope(Dwarf_Die& die, Place place) {
    if (::dwarf_haschildren(&die) <= 0) return;
    const auto scope = static_cast<uint32_t>(code_.scopes.size());
    code_.scopes.push_back({::dwarf_dieoffset(&die), UINT64_MAX, place.scope, die});
    place.scope = scope;
    walk_children(die, place);
  }

  void read_function(Dwarf_Die& die, Place place) {
    std::vector<InlinedCall> calls;
    place.calls = &calls;
    place.call_depth = 0;
    walk_scope(die, place);
    const auto first = static_cast<uint32_t>(code_.inlined.size());
    const auto count = static_cast<uint32_t>(calls.size());
    code_.inlined.insert(code_.inlined.end(), calls.begin(), calls.end());
    for (const CodeRange& range : code_ranges(&die, file_, most_ranges))
      code_.functions.push_back({range.low, range.high, first, count, die});
  }

  void read_inlined(Dwarf_Die& die, Place place) {
    if (place.calls != nullptr)
      for (const CodeRange& range : code_ranges(&die, file_, most_ranges))
        place.calls->push_back({range.low, range.high, place.call_depth, die});
    ++place.call_depth;
    walk_children(die, place);
  }

  const ElfFile& file_;
  UnitCode code_;
  Dwarf_Off last_seen_ = 0;
  bool any_seen_ = false;
};

}  // namespace

const CompiledFunction* UnitCode::find(uint64_t address) const {
  auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                [](uint64_t at, const CompiledFunction& f) { return at < f.low; });
  constexpr int overlaps = 4;  // that a sound file can have: copies which the linker has folded
  for (int i = 0; i < overlaps && after != functions.begin(); ++i)
    if (address < (--after)->high) return &*after;
  return nullptr;
}

uint32_t UnitCode::scope_of(Dwarf_Off die) const {
  auto after = std::lower_bound(scopes.begin(), scopes.end(), die,
                                [](const UnitScope& s, Dwarf_Off at) { return s.start < at; });
  if (after == scopes.begin()) return no_scope;
  auto scope = static_cast<uint32_t>(after - scopes.begin() - 1);
  while (scope != no_scope && die >= scopes[scope].end) scope = scopes[scope].parent;
  return scope;
}

std::vector<InlinedCall> calls_at(const UnitCode& code, const CompiledFunction& function,
                                  uint64_t address) {
  std::vector<InlinedCall> calls;
  for (uint32_t i = 0; i < function.inlined_count; ++i) {
    const InlinedCall& call = code.inlined[function.first_inlined + i];
    if (address < call.low || address >= call.high) continue;
    if (calls.empty() || call.depth > calls.back().depth) calls.push_back(call);
  }
  return calls;
}

UnitCode read_unit_code(Dwarf_Die root, const ElfFile& file) {
  return Reader(file).read(root);
}

std::vector<CodeRange> code_ranges(Dwarf_Die* die, const ElfFile& file, size_t most) {
  std::vector<CodeRange> ranges;
  Dwarf_Addr base = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  ptrdiff_t next = 0;
  while (ranges.size() < most && (next = ::dwarf_ranges(die, next, &base, &low, &high)) > 0) {
    const ElfFile::Section* section = low < high ? file.code_section_of(low) : nullptr;
    if (section != nullptr) ranges.push_back({low, std::min(high, section->end)});
  }
  return ranges;
}

namespace {

constexpr size_t most_ranges_of_unit = size_t{1} << 20;

const char* string_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  return ::dwarf_formstring(::dwarf_attr(die, name, &attribute));
}

std::string split_file_of(Dwarf_Die skeleton) {
  const char* name = string_of(&skeleton, DW_AT_dwo_name);
  if (name == nullptr) name = string_of(&skeleton, DW_AT_GNU_dwo_name);
  const char* folder = string_of(&skeleton, DW_AT_comp_dir);
  if (name == nullptr) return "";
  if (*name == '/' || folder == nullptr) return name;
  return std::string(folder) + "/" + name;
}

}  // namespace

Dwarf_Die declared_die(Dwarf_Die die) {
  constexpr int longest_chain = 16;
  for (int i = 0; i < longest_chain; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (::dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == nullptr &&
        ::dwarf_attr(&die, DW_AT_specification, &attribute) == nullptr)
      break;
    if (::dwarf_formref_die(&attribute, &next) == nullptr) break;
    die = next;
  }
  return die;
}

Units::Units(const ElfFile& debug, const ElfFile& file)
    : file_(file), dwarf_(::dwarf_begin_elf(debug.elf(), DWARF_C_READ, nullptr)) {
  if (dwarf_ == nullptr) return;
  read_units();
  read_claims();
}

void Units::read_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_CU* next = nullptr;
  uint8_t type = 0;
  Dwarf_Die die{};
  while (::dwarf_get_units(dwarf_.get(), unit, &next, nullptr, &type, &die, nullptr) == 0) {
    unit = next;
    if (type == DW_UT_compile || type == DW_UT_skeleton)
      units_.push_back({die, type == DW_UT_skeleton});
  }
}

void Units::read_claims() {
  std::vector<Claim> claims;
  for (uint32_t i = 0; i < units_.size(); ++i)
    for (const CodeRange& range : code_ranges(&units_[i].die, file_, most_ranges_of_unit))
      claims.push_back({range.low, range.high, i});
  std::stable_sort(claims.begin(), claims.end(),
                   [](const Claim& a, const Claim& b) { return a.low < b.low; });
  for (Claim claim : claims) {
    if (!claims_.empty()) claim.low = std::max(claim.low, claims_.back().high);
    if (claim.low < claim.high) claims_.push_back(claim);
  }
}

const Unit* Units::find(uint64_t address) const {
  auto after = std::upper_bound(claims_.begin(), claims_.end(), address,
                                [](uint64_t at, const Claim& c) { return at < c.low; });
  if (after == claims_.begin()) return nullptr;
  const Claim& claim = *--after;
  return address < claim.high ? &units_[claim.unit] : nullptr;
}

Dwarf_Die Units::root_of(const Unit& unit) const {
  if (!unit.is_skeleton) return unit.die;
  Dwarf_Die split{};
  const int failed =
      ::dwarf_cu_info(unit.die.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr);
  return failed != 0 || split.addr == nullptr ? unit.die : split;
}

const UnitCode& Units::code_of(Dwarf_CU* unit) const {
  std::unique_ptr<UnitCode>& code = code_[unit];
  if (code == nullptr) {
    Dwarf_Die root{};
    const int failed =
        ::dwarf_cu_info(unit, nullptr, nullptr, &root, nullptr, nullptr, nullptr, nullptr);
    code = std::make_unique<UnitCode>(failed == 0 ? read_unit_code(root, file_) : UnitCode{});
  }
  return *code;
}

void Units::visit_code(const std::function<void(const Unit&, const UnitCode&)>& visit) const {
  for (const Unit& unit : units_) {
    Dwarf_CU* root = root_of(unit).cu;
    const bool keep = code_.contains(root);
    visit(unit, code_of(root));
    if (!keep) code_.erase(root);
  }
}

std::optional<Dwarf_Die> Units::scope_around(Dwarf_Die die) const {
  Dwarf_Die declared = declared_die(die);
  const UnitCode& code = code_of(declared.cu);
  const uint32_t scope = code.scope_of(::dwarf_dieoffset(&declared));
  if (scope == no_scope) return std::nullopt;
  return code.scopes[scope].die;
}

std::string Units::missing_split_file() const {
  for (const Unit& unit : units_) {
    if (!unit.is_skeleton) continue;
    std::error_code ignored;
    const std::string path = split_file_of(unit.die);
    if (std::filesystem::exists(path, ignored)) continue;
    if (root_of(unit).addr == unit.die.addr) return path;
  }
  return "";
}

namespace {

// A source file as the symbol table names it.
struct FileSymbol {
  std::string name;
  std::vector<uint64_t> functions;  // its local ones
  bool is_bare = false;
};

// Assembly has no debug information by convention, and objects of link-time optimisation no source.
bool is_compiled_source(std::string_view name) {
  constexpr std::array others = {".o", ".s", ".S", ".asm"};
  const bool is_start_file = name == "crtstuff.c" || name.starts_with('<');
  return name.find('.') != std::string_view::npos && !is_start_file &&
         std::ranges::none_of(others, [&](const char* end) { return name.ends_with(end); });
}

std::vector<FileSymbol> read_files(const ElfFile& file) {
  std::vector<FileSymbol> files;
  visit_symbols(file, SHT_SYMTAB, [&](const GElf_Sym& symbol, const char* name) {
    if (GELF_ST_BIND(symbol.st_info) != STB_LOCAL) return;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type == STT_FILE) files.push_back({name, {}, false});
    if (type == STT_FUNC && symbol.st_shndx != SHN_UNDEF && !files.empty())
      files.back().functions.push_back(symbol.st_value);
  });
  return files;
}

class BareUnits {
 public:
  BareUnits(std::vector<FileSymbol> files, const KnownCode& known)
      : files_(std::move(files)), functions_(known.functions) {
    for (const Function& function : functions_) units_.push_back(known.unit_at(function.start));
  }

  std::vector<BareUnit> operator()() {
    find_bare_files();
    find_anchors();
    std::map<size_t, BareUnit> units;
    for (uint32_t i = 0; i < functions_.size(); ++i) {
      if (!units_[i].empty() || functions_[i].name.empty()) continue;
      const std::vector<size_t> owners = owners_of(functions_[i].start);
      for (const size_t owner : owners) {
        BareUnit& unit =
            units.try_emplace(owner, BareUnit{files_[owner].name, {}, {}}).first->second;
        (owners.size() == 1 ? unit.functions : unit.perhaps).push_back(i);
      }
    }
    std::vector<BareUnit> found;
    for (auto& [file, unit] : units) found.push_back(std::move(unit));
    return found;
  }

 private:
  std::optional<size_t> function_at(uint64_t start) const {
    const auto found = std::ranges::lower_bound(functions_, start, {}, &Function::start);
    if (found == functions_.end() || found->start != start) return std::nullopt;
    return static_cast<size_t>(found - functions_.begin());
  }

  // Its own code decides; a file without local functions is known by its name alone.
  void find_bare_files() {
    std::set<std::string> named;
    for (const std::string& unit : units_)
      if (!unit.empty()) named.insert(base_name(unit));
    for (FileSymbol& file : files_) {
      const bool has_unit = std::ranges::any_of(file.functions, [&](uint64_t start) {
        const auto function = function_at(start);
        return function && !units_[*function].empty();
      });
      const bool is_named = file.functions.empty() && named.contains(base_name(file.name));
      file.is_bare = is_compiled_source(file.name) && !has_unit && !is_named;
    }
  }

  // Where code of a certain file is. What has debug information names its file too, when only one
  // of that name was linked.
  void find_anchors() {
    for (size_t i = 0; i < files_.size(); ++i)
      for (const uint64_t start : files_[i].functions) anchors_[start] = i;
    std::map<std::string, std::vector<size_t>> by_name;
    for (size_t i = 0; i < files_.size(); ++i) by_name[base_name(files_[i].name)].push_back(i);
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (units_[i].empty()) continue;
      const auto named = by_name.find(base_name(units_[i]));
      if (named != by_name.end() && named->second.size() == 1)
        anchors_.try_emplace(functions_[i].start, named->second.front());
    }
  }

  // A file without local functions leaves no trace between its neighbours, and one that has them
  // only among its start-up code is among them where that is.
  std::vector<size_t> owners_of(uint64_t start) const {
    const auto next = anchors_.lower_bound(start);
    if (next != anchors_.end() && next->first == start) return bare_of({next->second});
    const bool has_next = next != anchors_.end(), has_last = next != anchors_.begin();
    std::set<size_t> around;
    if (has_next) around.insert(next->second);
    if (has_last) around.insert(std::prev(next)->second);
    if (has_next && has_last && around.size() == 1) return bare_of(around);
    const bool any_bare = !bare_of(around).empty();
    for (size_t i = 0; i < files_.size(); ++i)
      if (!any_bare || files_[i].functions.empty()) around.insert(i);
    return bare_of(around);
  }

  std::vector<size_t> bare_of(const std::set<size_t>& candidates) const {
    std::vector<size_t> owners;
    for (const size_t i : candidates)
      if (files_[i].is_bare) owners.push_back(i);
    return owners;
  }

  std::vector<FileSymbol> files_;
  std::span<const Function> functions_;
  std::vector<std::string> units_;      // of each function; empty: none
  std::map<uint64_t, size_t> anchors_;  // file by address
};

}  // namespace

std::vector<BareUnit> list_bare_units(const ElfFile& file, const ElfFile* debug,
                                      const KnownCode& known) {
  std::vector<FileSymbol> files = read_files(file);
  if (files.empty() && debug != nullptr) files = read_files(*debug);
  if (files.empty()) return {};
  return BareUnits(std::move(files), known)();
}

}  // namespace unflake
