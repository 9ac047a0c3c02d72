#include "symbols/variables.h"

#include <dwarf.h>

#include <algorithm>

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

}  // namespace unflake
