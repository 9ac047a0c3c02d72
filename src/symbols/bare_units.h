#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/image.h"

namespace unflake {

// What of an image's functions is known to whom lists its bare units.
struct KnownCode {
  std::span<const Function> functions;
  // The source file of the unit that has debug information for this code; empty: none has.
  std::function<std::string(uint64_t address)> unit_at;
};

// By the names of source files in the symbol table, behind each of which the local symbols of that
// file stand. Linkers keep the code of a file together, so that a global function belongs to a file
// of the local ones around it, or to one that has none.
std::vector<BareUnit> list_bare_units(const ElfFile& file, const ElfFile* debug,
                                      const KnownCode& known);

}  // namespace unflake
