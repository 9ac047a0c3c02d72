#include "symbols/units.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>

namespace unflake {
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

}  // namespace unflake
