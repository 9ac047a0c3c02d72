#include "symbols/imports.h"

#include <algorithm>
#include <map>

namespace unflake {
namespace {

using Slots = std::map<uint64_t, std::string>;  // where an address will be written, and of what

void add_slots(const ElfFile& file, Elf_Scn* section, const GElf_Shdr& header, Slots& slots) {
  Elf_Scn* symbols = ::elf_getscn(file.elf(), header.sh_link);
  GElf_Shdr symbols_header;
  Elf_Data* relocations = ::elf_getdata(section, nullptr);
  Elf_Data* table = symbols ? ::elf_getdata(symbols, nullptr) : nullptr;
  if (!relocations || !table || header.sh_entsize == 0 ||
      ::gelf_getshdr(symbols, &symbols_header) == nullptr)
    return;
  const auto count =
      static_cast<int>(std::min<uint64_t>(header.sh_size / header.sh_entsize, INT32_MAX));
  for (int i = 0; i < count; ++i) {
    GElf_Rela relocation;
    GElf_Sym symbol;
    if (::gelf_getrela(relocations, i, &relocation) == nullptr) return;
    const uint64_t type = GELF_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const auto number = static_cast<int>(GELF_R_SYM(relocation.r_info));
    if (::gelf_getsym(table, number, &symbol) == nullptr) continue;
    const char* name = ::elf_strptr(file.elf(), symbols_header.sh_link, symbol.st_name);
    if (name != nullptr && *name != '\0') slots[relocation.r_offset] = name;
  }
}

Slots slots_of(const ElfFile& file) {
  Slots slots;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(file.elf(), section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_RELA)
      add_slots(file, section, header, slots);
  }
  return slots;
}

// `jmp *slot(%rip)`, behind the mark of an indirect branch's target where there is one. None: these
// bytes are something else.
std::optional<uint64_t> slot_of_entry(std::span<const uint8_t> code, uint64_t address) {
  constexpr uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  size_t at =
      std::ranges::equal(code.first(std::min(code.size(), sizeof endbr)), endbr) ? sizeof endbr : 0;
  if (at < code.size() && code[at] == 0xf2) ++at;  // bnd
  if (at + 6 > code.size() || code[at] != 0xff || code[at + 1] != 0x25) return std::nullopt;
  int32_t displacement = 0;
  std::memcpy(&displacement, code.data() + at + 2, sizeof displacement);
  return address + at + 6 + static_cast<uint64_t>(int64_t{displacement});
}

}  // namespace

// Entries have 8 or 16 bytes, by the table and the linker.
std::vector<Import> imports_of(const ElfFile& file) {
  constexpr size_t shortest_entry = 8, longest_jump = 11;
  const Slots slots = slots_of(file);
  std::vector<Import> imports;
  for (const char* table : {".plt", ".plt.sec", ".plt.got"}) {
    const auto section = file.section(table);
    if (!section) continue;
    // What the file has of it: a header may promise anything.
    const auto code = file.bytes_at(section->start, section->end - section->start);
    for (size_t at = 0; at < code.size(); at += shortest_entry) {
      const uint64_t entry = section->start + at;
      const auto jump = code.subspan(at, std::min(longest_jump, code.size() - at));
      const auto slot = slot_of_entry(jump, entry);
      const auto found = slot ? slots.find(*slot) : slots.end();
      if (found != slots.end()) imports.push_back({found->second, entry});
    }
  }
  std::ranges::sort(imports, {}, &Import::entry);
  return imports;
}

}  // namespace unflake
