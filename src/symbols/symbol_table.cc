#include "symbols/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>

#include "symbols/eh_frame.h"

namespace unflake {
namespace {

// A symbol with what decides which of several at one address gives the name.
struct Candidate {
  Symbol symbol;
  int rank = 0;  // lower is better
};

int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  const int clone = std::strchr(name, '.') != nullptr ? 4 : 0;
  return clone + (binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2);
}

void read_table(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const ElfFile& file,
                std::vector<Candidate>& found) {
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = data->d_size / sizeof(Elf64_Sym);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (::gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    const ElfFile::Section* code = file.code_section_of(symbol.st_value);
    const char* name = ::elf_strptr(elf, header.sh_link, symbol.st_name);
    if (code == nullptr || name == nullptr || *name == 0) continue;
    const uint64_t size = std::min<uint64_t>(symbol.st_size, code->end - symbol.st_value);
    found.push_back({{symbol.st_value, size, name}, rank_of(symbol, name)});
  }
}

bool read_tables(const ElfFile& from, uint32_t type, const ElfFile& file,
                 std::vector<Candidate>& found) {
  const size_t before = found.size();
  Elf_Scn* section = nullptr;
  while ((section = ::elf_nextscn(from.elf(), section)) != nullptr) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == type)
      read_table(from.elf(), section, header, file, found);
  }
  return found.size() > before;
}

std::vector<Candidate> read_candidates(const ElfFile& file, const ElfFile* debug) {
  std::vector<Candidate> found;
  const bool complete = read_tables(file, SHT_SYMTAB, file, found) ||
                        (debug != nullptr && read_tables(*debug, SHT_SYMTAB, file, found));
  if (!complete) read_tables(file, SHT_DYNSYM, file, found);
  for (const Extent& extent : eh_frame_extents(file))
    found.push_back({{extent.start, extent.size, ""}, 8});
  return found;
}

bool comes_first(const Candidate& a, const Candidate& b) {
  if (a.symbol.start != b.symbol.start) return a.symbol.start < b.symbol.start;
  return a.rank < b.rank;
}

// One symbol for each start, with the best name and a size where any of them has one.
std::vector<Candidate> unique_starts(std::vector<Candidate> found) {
  std::stable_sort(found.begin(), found.end(), comes_first);
  std::vector<Candidate> unique;
  for (const Candidate& candidate : found) {
    if (unique.empty() || unique.back().symbol.start != candidate.symbol.start)
      unique.push_back(candidate);
    else if (unique.back().symbol.size == 0)
      unique.back().symbol.size = candidate.symbol.size;
  }
  return unique;
}

// Where each has to end at the latest: a named one at the next name, the others at whatever begins
// next.
std::vector<uint64_t> next_starts(const std::vector<Candidate>& unique) {
  std::vector<uint64_t> starts(unique.size());
  uint64_t next = UINT64_MAX;
  uint64_t next_named = UINT64_MAX;
  for (size_t i = unique.size(); i-- > 0;) {
    const Symbol& symbol = unique[i].symbol;
    const bool named = *symbol.name != 0;
    starts[i] = named && symbol.size > 0 ? next_named : next;
    next = symbol.start;
    if (named) next_named = symbol.start;
  }
  return starts;
}

}  // namespace

SymbolTable::SymbolTable(const ElfFile& file, const ElfFile* debug) {
  const std::vector<Candidate> unique = unique_starts(read_candidates(file, debug));
  const std::vector<uint64_t> limits = next_starts(unique);
  uint64_t end = 0;
  for (size_t i = 0; i < unique.size(); ++i) {
    Symbol symbol = unique[i].symbol;
    // Unwinding is described in pieces that need not begin where functions do.
    if (*symbol.name == 0 && symbol.start < end) continue;
    const uint64_t section_end = file.code_section_of(symbol.start)->end;
    const uint64_t room = std::min(limits[i], section_end) - symbol.start;
    symbol.size = symbol.size == 0 ? room : std::min(symbol.size, room);
    end = symbol.start + symbol.size;
    symbols_.push_back(symbol);
  }
}

const Symbol* SymbolTable::find(uint64_t address) const {
  auto after = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                                [](uint64_t at, const Symbol& s) { return at < s.start; });
  if (after == symbols_.begin()) return nullptr;
  const Symbol& symbol = *--after;
  return address - symbol.start < symbol.size ? &symbol : nullptr;
}

}  // namespace unflake
