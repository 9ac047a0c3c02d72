#pragma once

#include "patch/source_unit.h"
#include "patch/time_numbers.h"
#include "patch/variable_uses.h"

namespace unflake {

struct FoundLiteral {
  TimeExpression time;  // what the call passes, in nanoseconds, with the numbers that it is made of
  std::string callee;
  bool is_guess = false;    // the callee is not known, and its number taken for the unit that fits
  double unit = 0;          // nanoseconds of a plain number
  bool is_default = false;  // the call leaves its time out
};

// The time that the call passes. At least `wanted.value`, less than `most`.
Result<FoundLiteral> find_literal(const SourceUnit& unit, const VariableUses& uses,
                                  const WantedLiteral& wanted, Duration most);

}  // namespace unflake
