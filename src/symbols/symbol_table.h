#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbols/elf_file.h"

namespace unflake {

struct Symbol {
  uint64_t start = 0;
  uint64_t size = 0;
  const char* name = "";  // mangled, in the file's mapping; empty when only the extent is known
};

// The functions that the linker sees, ordered and without overlaps.
class SymbolTable {
 public:
  // `debug` is the separate debug file, or null.
  SymbolTable(const ElfFile& file, const ElfFile* debug);

  std::span<const Symbol> symbols() const { return symbols_; }
  const Symbol* find(uint64_t address) const;

 private:
  std::vector<Symbol> symbols_;
};

}  // namespace unflake
