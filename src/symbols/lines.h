#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/image.h"
#include "symbols/units.h"

namespace unflake {

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

}  // namespace unflake
