#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "patch/source_unit.h"

namespace unflake {

// `ts.tv_sec = 2;` and `ts.tv_sec += 2;`
struct FieldWrite {
  std::string field;
  bool in_it_value = true;  // false for the interval of a timer
  bool adds = false;
  CXCursor value;
};

struct VariableUse {
  std::set<std::pair<std::string, int>> places;  // file and line
  std::vector<int> changes;                      // lines
  std::vector<FieldWrite> field_writes;
  bool takes_clock = false;  // clock_gettime(CLOCK_REALTIME, &ts)
};

// What the unit's own code (no system headers) does with its variables, fields and parameters, and
// which calls it makes, by identity.
struct VariableUses {
  std::map<std::string, VariableUse> of;
  std::map<std::string, std::vector<CXCursor>> calls;
};

VariableUses variable_uses(const SourceUnit& unit);

}  // namespace unflake
