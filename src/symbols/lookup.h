#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/dwarf.h"
#include "symbols/elf_file.h"
#include "symbols/image.h"

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

// What symbol table, DWARF and unwind table know together.
std::vector<Function> list_functions(const SymbolTable& symbols, const Units& units,
                                     SourceLines& lines);

// What a name refers to. Several functions when they are overloads or instances of one template;
// none and some suggestions when the name is unknown or could be several.
struct FunctionMatches {
  std::vector<const Function*> functions;  // in the order of their addresses; as long as the image
  std::vector<std::string> suggestions;    // qualified names
};

// By qualified name, or the end of one that is unique: "Server::push" for "app::Server::push".
// Template arguments may be left out.
FunctionMatches find_functions(const Image& image, std::string_view name);

struct LineMatch {
  std::string file;
  int line = 0;                     // the next one that has code when the wanted one has none
  std::vector<uint64_t> addresses;  // the first of each copy of the line: inlined ones, instances
  std::vector<std::string> suggestions;  // files, when none or more than one could be meant
};

// Where a source line begins. The file is given by its path or by the end of it.
LineMatch addresses_of_line(const Image& image, std::string_view file, int line);

std::vector<Extent> collect_code_from(const Image::FileFilter& filter, const Units& units,
                                      SourceLines& lines);

// Ordered, with overlapping and adjacent ones joined.
std::vector<Extent> merge_extents(std::vector<Extent> extents);

}  // namespace unflake
