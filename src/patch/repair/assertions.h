#pragma once

#include <string>

#include "patch/repair/test_start.h"

namespace unflake {

// An assertion of a test framework, as what it wants to be true.
struct Assertion {
  MacroUse use;
  std::string condition;  // an expression
  std::string check;  // that takes a condition and is as strict: `EXPECT_TRUE`; empty: a statement
  InsertionPoint point;  // before it
};

// The one that fails at a line. An error: its condition cannot be asked for by itself.
Result<Assertion> assertion_at(const PatchPlace& place);

// Why an expression cannot be evaluated again and again; empty: it can. `doubt` is what must be
// taken on trust.
std::string side_effect_of(CXCursor expression, std::string& doubt);

}  // namespace unflake
