#include "agent/imports.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

namespace unflake::agent {
namespace {

struct Symbols {
  const ElfW(Sym) * table;
  const char* names;
  uint32_t imported;  // no import has a higher number
};

// The loader has added the load address already, unless it must not write there.
template <class T>
const T* at(const link_map& map, uint64_t address) {
  return reinterpret_cast<const T*>(address < map.l_addr ? address + map.l_addr : address);
}

// Where a library has only the old hash table, all of its symbols may be imports.
Symbols symbols_of(const link_map& map) {
  Symbols symbols{};
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const uint64_t address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB)
      symbols.table = at<ElfW(Sym)>(map, address);
    else if (entry->d_tag == DT_STRTAB)
      symbols.names = at<char>(map, address);
    else if (entry->d_tag == DT_HASH && symbols.imported == 0)
      symbols.imported = at<uint32_t>(map, address)[1];
    else if (entry->d_tag == DT_GNU_HASH)
      symbols.imported = at<uint32_t>(map, address)[1];
  }
  return symbols;
}

bool imports_dlopen(const Symbols& symbols) {
  for (uint32_t i = 1; i < symbols.imported; ++i) {
    const ElfW(Sym)& symbol = symbols.table[i];
    const char* name = symbols.names + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF &&
        (strcmp(name, "dlopen") == 0 || strcmp(name, "dlmopen") == 0))
      return true;
  }
  return false;
}

}  // namespace

bool opens_libraries() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    if (map->l_ld == _DYNAMIC) continue;  // the agent itself
    const Symbols symbols = symbols_of(*map);
    if (symbols.table != nullptr && symbols.names != nullptr && imports_dlopen(symbols))
      return true;
  }
  return false;
}

}  // namespace unflake::agent
