#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "symbols/file_table.h"
#include "symbols/image.h"
#include "symbols/units.h"

namespace unflake {

struct SourcePlace {
  uint32_t file = 0;  // in the file table
  int line = 0;
};

// Source positions as numbers in one file table for the whole image.
class SourceLines {
 public:
  explicit SourceLines(const Units& units) : units_(units) {}

  // Code that belongs to no line takes that of the code before it, as long as `same_frame` holds
  // for it.
  std::optional<SourcePlace> at(const Unit& unit, uint64_t address,
                                const std::function<bool(uint64_t)>& same_frame);
  std::optional<SourcePlace> declaration(Dwarf_Die* die);
  std::optional<SourcePlace> call(Dwarf_Die* inlined);
  const std::string& file_name(uint32_t number) const { return files_.name(number); }

 private:
  std::optional<SourcePlace> place(Dwarf_Die* die, unsigned file_name, unsigned line_name);

  const Units& units_;
  FileTable files_;
};

// All rows of all line tables.
struct LineTable {
  std::vector<LineRow> rows;
  std::vector<std::string> files;
};
LineTable read_line_table(const Units& units, const ElfFile& file);

}  // namespace unflake
