#pragma once

#include <optional>

#include "patch/literals/literal_search.h"
#include "patch/literals/time_numbers.h"

namespace unflake {

// What the source says about an expression's value, through constants, variables that are never
// changed, and parameters, as the caller of this number passes them.
TimeExpression evaluate_time(const SourceUnit& unit, const VariableUses& uses, CXCursor expression,
                             size_t caller);

// What to evaluate where a call leaves an argument out.
std::optional<CXCursor> default_argument(CXCursor function, size_t index);
bool is_left_out(CXCursor argument);

}  // namespace unflake
