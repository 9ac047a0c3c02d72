#pragma once

#include <optional>
#include <string>
#include <vector>

#include "patch/literals/literal_search.h"
#include "patch/literals/time_numbers.h"
#include "patch/source/source_unit.h"

namespace unflake {

// An argument that may be the time of a call.
struct TimeArgument {
  std::string callee;
  CXCursor expression;
  double unit = 0;          // nanoseconds of a plain number; 0 when the callee is not known
  bool is_known = true;     // a call that is known to end in the API
  bool is_default = false;  // left out in the call
};

// Calls that start on the line are nearest, then calls that span it, then those of the
// statement that does: line tables name any of these lines.
struct CallAtLine {
  CXCursor call;
  int distance = 0;
};
constexpr int most_call_distance = 2;

std::vector<CallAtLine> calls_at(const SourceUnit& unit, int line);

// The arguments of a call that may be a time for this API ("nanosleep", "poll"); none when the call
// is known to end in another one.
std::vector<TimeArgument> time_arguments(CXCursor call, const std::string& api);

// What the source says about an expression's value, through constants, variables that are never
// changed, and parameters, as the caller of this number passes them.
TimeExpression evaluate_time(const SourceUnit& unit, const VariableUses& uses, CXCursor expression,
                             size_t caller);

// What to evaluate where a call leaves an argument out.
std::optional<CXCursor> default_argument(CXCursor function, size_t index);
bool is_left_out(CXCursor argument);

}  // namespace unflake
