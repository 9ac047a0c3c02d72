#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/outcome.h"
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

}  // namespace unflake
