#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unflake {

struct LineEntry {
  uint64_t address = 0;
  uint32_t file = 0;  // in the unit's own table
  int line = 0;
  bool is_statement = false;
  bool is_end = false;
};

// A run of rows that the compiler wrote for one section of code, up to and with its end.
using LineSequence = std::vector<LineEntry>;

// The line table at an offset of .debug_line, DWARF 2 to 5. libdw sorts all rows of a unit by
// address, where those of code that the linker has dropped, which seem to begin at 0, mix with the
// others; here they can be told apart.
std::vector<LineSequence> read_line_program(std::span<const uint8_t> section, uint64_t offset);

}  // namespace unflake
