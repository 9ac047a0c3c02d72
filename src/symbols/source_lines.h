#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/file_table.h"
#include "symbols/image.h"
#include "symbols/line_program.h"
#include "symbols/units.h"

namespace unflake {

struct SourcePlace {
  uint32_t file = 0;  // in the file table
  int line = 0;
};

// The rows of a unit that are about code which is there, ordered by address; each sequence ends
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

  // Code that belongs to no line takes that of the code before it, as long as `same_frame` holds
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
