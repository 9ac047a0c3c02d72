#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "patch/literals/time_literal.h"
#include "patch/literals/time_numbers.h"
#include "patch/source/source_unit.h"
#include "util/time.h"

namespace unflake {

struct NewLiteral {
  Spot begin, end;  // of what it replaces
  std::string text;
};

// Another number in place of the one that gives the expression its value: in the same unit
// where that is a whole number, else in a finer one, else rounded up.
Result<NewLiteral> new_literal(const SourceUnit& unit, const TimeExpression& expression,
                               Duration value);

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

struct FoundLiteral {
  TimeExpression time;  // what the call passes, in nanoseconds, with the numbers that it is made of
  std::string callee;
  bool is_guess = false;    // unknown callee: its number is taken to be in the unit that fits
  double unit = 0;          // nanoseconds of a plain number
  bool is_default = false;  // the call leaves its time out
};

// The time that the call passes. At least `wanted.value`, less than `most`.
Result<FoundLiteral> find_literal(const SourceUnit& unit, const VariableUses& uses,
                                  const WantedLiteral& wanted, Duration most);

// What else changes when the literal changes, for people; empty when nothing is known to.
std::string caution_of(const SourceUnit& unit, const VariableUses& uses, const FoundLiteral& found);

// The edit that should give the call its new time, before it is tried.
Result<SourceEdit> propose_edit(const SourceUnit& unit, const WantedLiteral& wanted,
                                Duration value);

}  // namespace unflake
