#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "patch/repair/repair_sources.h"

// What idioms ask of a syntax tree, and of a test's macros in it.
namespace unflake {

void walk(CXCursor cursor, const std::function<void(CXCursor)>& visit);
std::optional<CXCursor> first_below(CXCursor cursor, const std::function<bool(CXCursor)>& wanted);

// Without what the compiler puts around an expression.
CXCursor unwrapped(CXCursor expression);

// The variable, field or parameter that an expression names; null: it is more than a name.
CXCursor variable_named_by(CXCursor expression);

// `queue` of `queue.push(1)`; null: of a function, or of `this`.
CXCursor object_of(CXCursor call);

std::string source_text(const SourceUnit& unit, CXCursor cursor);
std::string dedented(const std::string& text, const std::string& indent);

// A variable can be used at a place without more: it is declared in a block around it, or is a
// member of the class whose method the place is in.
bool is_visible_at(const SourceUnit& unit, CXCursor variable, const InsertionPoint& point);

// The full statement that an expression belongs to.
std::optional<InsertionPoint> statement_of(const SourceUnit& unit, CXCursor expression);

// Every call in a file.
std::vector<CXCursor> calls_in(const SourceUnit& unit, const std::string& file);

// A macro of a test framework as it is used in a source.
struct MacroUse {
  std::string name;
  std::string file;
  size_t begin = 0, end = 0;
  int first_line = 0, last_line = 0;
  std::vector<std::string> arguments;  // as they are written, trimmed
};

// Those of a file, in its order, without those inside of others.
std::vector<MacroUse> macro_uses(const SourceUnit& unit, const std::string& file);

// Where the test begins, as a place for its first statement or, with a fixture that does work of
// its own, for the fixture's first member.
struct TestStart {
  InsertionPoint point;
  std::string fixture;  // empty: the test's own body
};
Result<TestStart> test_start(const PatchRequest& request, RepairSources& sources);

// An assertion of a test framework, as what it wants to be true.
struct Assertion {
  MacroUse use;
  std::string condition;  // an expression
  std::string check;  // that takes a condition and is as strict: `EXPECT_TRUE`; empty: a statement
  InsertionPoint point;  // before it
};

// The one that fails at a line. An error: its condition cannot be asked for by itself.
Result<Assertion> assertion_at(const PatchPlace& place);

// In place of one, in a program that tells by its exit code: what main wants before it returns.
Result<Assertion> check_of_main(const std::shared_ptr<SourceUnit>& unit);

// Why an expression cannot be evaluated again and again; empty: it can. `doubt` is what must be
// taken on trust.
std::string side_effect_of(CXCursor expression, std::string& doubt);

}  // namespace unflake
