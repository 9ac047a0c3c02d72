#pragma once

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

}  // namespace unflake
