#pragma once

#include <regex.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "output/output_parsers.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// How a run of the test ended, from how its process ended and what it printed.
Outcome read_outcome(const Test& test, const ProcessResult& process);

// The same for all tests that the process ran: how each of them ended, by what its framework
// printed of it. A test that was not reached is skipped.
void read_outcomes(const TestOrder& tests, ExperimentResult& result);

// A CMake regular expression: ^ $ . [] * + ? | () and a backslash in front of a literal character.
// No counts in braces, no named classes.
class CMakeRegex {
 public:
  static Result<CMakeRegex> compile(const std::string& pattern);

  // Whether any part of the text matches. Text that was cut at an end does not match an anchor
  // there.
  bool matches(std::string_view text, bool cut_at_start = false, bool cut_at_end = false) const;

 private:
  struct Free {
    void operator()(regex_t* regex) const {
      regfree(regex);
      delete regex;
    }
  };
  using Compiled = std::unique_ptr<regex_t, Free>;

  static Result<Compiled> compile_posix(const std::string& posix);
  explicit CMakeRegex(Compiled from_start) : from_start_(std::move(from_start)) {}

  Compiled from_start_;  // any text, then the expression
};

// The same in POSIX's extended syntax.
std::string posix_from_cmake(std::string_view pattern);

// What CTest makes of a test that exited.
struct Judgement {
  OutcomeKind kind = OutcomeKind::pass;  // pass, fail or skipped
  std::optional<Failure> failure;        // of a fail that the exit status does not explain
  std::string reason;                    // of a skip
};

// As CTest does: skips come first; then the patterns decide, where there are any; else the exit
// status; and WILL_FAIL inverts the result.
Judgement judge(const PassRule& rule, int exit_status, const std::vector<TextPiece>& output);

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
