#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/image.h"

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

// The ranges of a DIE that lie in code; the linker keeps ranges of what it has dropped.
struct CodeRange {
  uint64_t low = 0;
  uint64_t high = 0;
};
std::vector<CodeRange> code_ranges(Dwarf_Die* die, const ElfFile& file, size_t most);

struct EndDwarf {
  void operator()(Dwarf* dwarf) const { ::dwarf_end(dwarf); }
};

struct Unit {
  Dwarf_Die die{};  // with split DWARF the skeleton, which has the line table
  bool is_skeleton = false;
};

// The compilation units of a file, found by address.
class Units {
 public:
  // `debug` holds the DWARF, `file` the code; they may be the same.
  Units(const ElfFile& debug, const ElfFile& file);

  const std::vector<Unit>& all() const { return units_; }
  // Where two units claim an address the first wins: that is the copy that the linker kept.
  const Unit* find(uint64_t address) const;

  // The root of the DIEs: of the split file where there is one.
  Dwarf_Die root_of(const Unit& unit) const;
  const UnitCode& code_of(Dwarf_CU* unit) const;
  // One after another, without keeping what nobody has asked for before.
  void visit_code(const std::function<void(const Unit&, const UnitCode&)>& visit) const;

  // The namespace, type or function that this was declared in.
  std::optional<Dwarf_Die> scope_around(Dwarf_Die die) const;

  // The first .dwo file that is not there; empty when none is missing.
  std::string missing_split_file() const;

 private:
  struct Claim {
    uint64_t low = 0;
    uint64_t high = 0;
    uint32_t unit = 0;
  };
  void read_units();
  void read_claims();

  const ElfFile& file_;
  std::unique_ptr<Dwarf, EndDwarf> dwarf_;
  std::vector<Unit> units_;
  std::vector<Claim> claims_;  // ordered, without overlaps
  mutable std::unordered_map<Dwarf_CU*, std::unique_ptr<UnitCode>> code_;
};

// The DIE where the name was declared: concrete code and definitions refer to it.
Dwarf_Die declared_die(Dwarf_Die die);

// What is known about an image's functions when its bare units are listed.
struct KnownCode {
  std::span<const Function> functions;
  // The source file of the unit that has debug information for this code; empty: none has.
  std::function<std::string(uint64_t address)> unit_at;
};

// By the names of source files in the symbol table, each followed by the local symbols of that
// file. Linkers keep the code of a file together, so a global function belongs to a file
// of the local ones around it, or to one that has none.
std::vector<BareUnit> list_bare_units(const ElfFile& file, const ElfFile* debug,
                                      const KnownCode& known);

}  // namespace unflake
