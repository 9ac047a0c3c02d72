#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/image.h"
#include "symbols/names.h"
#include "symbols/units.h"

namespace unflake {

// The variables that have one place as long as the program runs: DWARF knows their types, the
// symbol table at least their names.
class Variables {
 public:
  // `debug` is the separate debug file, or null.
  Variables(const Units& units, const ElfFile& file, const ElfFile* debug);

  std::optional<Variable> at(uint64_t address, DieNames& names) const;

 private:
  struct Typed {
    uint64_t start = 0;
    uint64_t size = 0;
    Dwarf_Die die{};
  };
  struct Named {
    uint64_t start = 0;
    uint64_t size = 0;
    const char* name = "";
  };
  void read(Dwarf_Die parent, int nesting);
  void add(Dwarf_Die die);
  void read_symbols(const ElfFile& file);

  std::vector<Typed> typed_;  // ordered by start, as `named_`
  std::vector<Named> named_;
  Dwarf_Off last_seen_ = 0;
};

}  // namespace unflake
