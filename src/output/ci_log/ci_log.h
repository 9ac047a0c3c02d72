#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "output/ci_log/log_programs.h"
#include "util/result.h"

namespace unflake {

// A failing test that a log tells of.
struct LoggedFailure {
  std::string test;   // as the log calls it: "Suite.Case", a test case's title; empty: it does not
  std::string entry;  // of CTest (or a Bazel target) that ran it, where there is one
  Framework framework = Framework::command;  // whose format it was in; command: nobody's
  // As a run with the same output gives them, with the same signatures; the first one names it.
  // Empty where the log names the test and does not show how it failed.
  std::vector<Failure> failures;
  size_t line = 0;  // of the log, from 1, where it begins; 0: in a JUnit file
};

struct CiLog {
  std::vector<LoggedFailure> failures;  // in the log's order, at most `most_logged_failures`
  bool shows_passing_runs = false;
  size_t lines = 0;
};

inline constexpr size_t most_logged_failures = 1000;

// Reads the raw log of a CI job, with whatever the CI system put in front of the lines, or a JUnit
// file. An error says why nothing can be learnt from the text: it is empty, no text, of a build
// that failed, or holds no output of a test. A log of passing runs only is no error.
Result<CiLog> read_ci_log(std::string_view text);

// Whether the log means this test, whether it calls it by its own name, by that of the CTest entry
// which ran it, or as a JUnit file does.
bool is_named(const LoggedFailure& logged, const Test& test);

// Whether a run failed in the way that a log tells of. A log may tell less than a run, such as a
// time-out without a place: what it does tell has to agree, files by their last name. Equal
// signatures always do.
bool tells_of(const Failure& logged, const Failure& seen);

// The log's failures of this test. Of a log that names no test at all: every one. An error says
// that the log shows it passing, or which other tests it names.
Result<std::vector<LoggedFailure>> logged_failures_of(const Test& test, const CiLog& log);

// Positions among `tests` of those that the log tells to have failed, in the log's order, each
// once. An error where it names none of them.
Result<std::vector<size_t>> tests_named_in(const CiLog& log, const std::vector<Test>& tests);

// The failures that a run with this output has. `is_complete`: the framework lived to sum up, as
// the log shows elsewhere. Without a failure that nothing but an exit status tells.
std::vector<Failure> failures_in(std::string text, Framework framework, const LoggedEnd& end,
                                 bool is_complete);

// Adds what a program's output tells.
void read_program(const LoggedProgram& program, CiLog& log);

}  // namespace unflake
