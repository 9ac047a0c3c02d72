#include "symbols/unit_code.h"

#include <dwarf.h>

#include <algorithm>

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
      // A broken file can name a sibling that was seen already; walking it again has no end.
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

}  // namespace unflake
