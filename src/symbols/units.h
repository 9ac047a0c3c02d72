#pragma once

#include <elfutils/libdw.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/unit_code.h"

namespace unflake {

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
  // Where two units claim an address the first does: that is the copy which the linker kept.
  const Unit* find(uint64_t address) const;

  // The root of the DIEs: of the split file where there is one.
  Dwarf_Die root_of(const Unit& unit) const;
  const UnitCode& code_of(Dwarf_CU* unit) const;
  // One after the other, without keeping what nobody has asked for before.
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

// The DIE that stands where the name was declared: concrete code and definitions refer to it.
Dwarf_Die declared_die(Dwarf_Die die);

}  // namespace unflake
