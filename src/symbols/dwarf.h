#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Without "." and "..", as far as the text alone can tell.
std::string normal_path(std::string_view path);

// Source files by number. The compiler names one file in many ways; here it has one.
class FileTable {
 public:
  // As libdw gives it, with the compile folder in front. It must stay where it is as long as the
  // table lives: the same pointer comes again and again.
  uint32_t number_of(const char* raw);
  const std::string& name(uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }

 private:
  std::unordered_map<const void*, uint32_t> by_pointer_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::deque<std::string> names_;
};

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

struct SourcePlace {
  uint32_t file = 0;  // in the file table
  int line = 0;
};

// The rows of a unit that are about existing code, ordered by address; each sequence ends
// with its end.
struct UnitLines {
  std::vector<LineEntry> rows;
  Dwarf_Files* files = nullptr;
  size_t file_count = 0;
};

// Source positions as numbers in one file table for the whole image.
class SourceLines {
 public:
  SourceLines(const Units& units, const ElfFile& debug, const ElfFile& file);

  // Code without a line takes that of the code before it, as long as `same_frame` holds
  // for it.
  std::optional<SourcePlace> at(const Unit& unit, uint64_t address,
                                const std::function<bool(uint64_t)>& same_frame);
  std::optional<SourcePlace> declaration(Dwarf_Die* die);
  std::optional<SourcePlace> call(Dwarf_Die* inlined);
  const std::string& file_name(uint32_t number) const { return files_.name(number); }
  UnitLines read(const Unit& unit) const;

 private:
  std::optional<SourcePlace> place(Dwarf_Die* die, unsigned file_name, unsigned line_name);

  const Units& units_;
  const ElfFile& file_;
  std::span<const uint8_t> section_;
  FileTable files_;
  std::unordered_map<Dwarf_CU*, UnitLines> lines_;
};

// All rows of all line tables.
struct LineTable {
  std::vector<LineRow> rows;
  std::vector<std::string> files;
};
LineTable read_line_table(const Units& units, const SourceLines& lines);

// Qualified names of functions, from their linkage names where there are any: functions without
// external linkage have none, and get theirs from the scopes around them.
class DieNames {
 public:
  explicit DieNames(const Units& units) : units_(units) {}

  const std::string& name_of(Dwarf_Die function);

 private:
  std::string compose(Dwarf_Die die, int depth);
  std::string name_with_linkage(Dwarf_Die die, int depth);
  std::string scope_name(Dwarf_Die die, int depth);

  const Units& units_;
  std::unordered_map<const void*, std::string> names_;  // by the address of the DIE
};

// As in the symbol table; null when the compiler gives none.
const char* linkage_name(Dwarf_Die* die);

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

// What symbol table, DWARF and unwind table know together.
std::vector<Function> list_functions(const SymbolTable& symbols, const Units& units,
                                     SourceLines& lines);

std::vector<Extent> collect_code_from(const Image::FileFilter& filter, const Units& units,
                                      SourceLines& lines);

// Ordered, with overlapping and adjacent ones joined.
std::vector<Extent> merge_extents(std::vector<Extent> extents);

}  // namespace unflake
