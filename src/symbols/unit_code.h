#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "symbols/elf_file.h"

namespace unflake {

// A contiguous piece of code that a call was replaced by.
struct InlinedCall {
  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t depth = 0;  // 0: directly in the function
  Dwarf_Die die{};
};

// A contiguous piece of a function. One that the compiler has split has several, which share their
// inlined calls.
struct CompiledFunction {
  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t first_inlined = 0;
  uint32_t inlined_count = 0;
  Dwarf_Die die{};
};

// What gives names inside of it their qualification. DIEs do not know their parents.
struct UnitScope {
  Dwarf_Off start = 0;
  Dwarf_Off end = 0;
  uint32_t parent = 0;
  Dwarf_Die die{};
};
inline constexpr uint32_t no_scope = 0xffffffff;

// What the DIEs of a compilation unit say about its code.
struct UnitCode {
  std::vector<CompiledFunction> functions;  // ordered by low
  std::vector<InlinedCall> inlined;
  std::vector<UnitScope> scopes;  // outer ones before those inside

  const CompiledFunction* find(uint64_t address) const;
  uint32_t scope_of(Dwarf_Off die) const;  // the innermost around it
};

// The inlined calls at an address, outermost first.
std::vector<InlinedCall> calls_at(const UnitCode& code, const CompiledFunction& function,
                                  uint64_t address);

UnitCode read_unit_code(Dwarf_Die root, const ElfFile& file);

// The ranges of a DIE that lie in code; the linker leaves ranges of what it has dropped behind.
struct CodeRange {
  uint64_t low = 0;
  uint64_t high = 0;
};
std::vector<CodeRange> code_ranges(Dwarf_Die* die, const ElfFile& file, size_t most);

}  // namespace unflake
