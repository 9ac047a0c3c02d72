#pragma once

#include <optional>
#include <string>

#include "patch/repair/repair_sources.h"

namespace unflake {

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

}  // namespace unflake
