#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "util/time.h"

namespace unflake {

// What a framework printed of one test, of a process that ran several.
struct TestSection {
  std::string name;         // as the framework has it; empty: whichever test came next
  std::string text;         // as if the test had been run alone
  bool has_ended = false;   // the framework told so
  bool has_failed = false;  // by the framework's own word; only of one that has ended
  Duration duration{};      // of one that has ended
  int code = 0;             // the shell's, of one with its own process
};

// In their order. `names` are the tests that were asked for; of Catch2 and doctest with durations,
// of Boost.Test with its log of test suites.
std::vector<TestSection> sections_in(Framework framework, std::string_view text,
                                     const std::vector<std::string>& names);

// Of a process that starts one for each test; sections have the numbers of the tests.
struct NumberedSection {
  size_t number = 0;
  TestSection section;
};
std::vector<NumberedSection> sections_in_sequence(std::string_view text);

// Whether this is the test that a framework calls so; a suite, or an opened CTest entry, may stand
// before its name.
bool is_called(const std::string& test, std::string_view name);

}  // namespace unflake
