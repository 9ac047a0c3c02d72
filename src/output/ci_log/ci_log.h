#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "output/ci_log/log_parts.h"
#include "util/result.h"

namespace unflake {

// A failing test that a log shows.
struct LoggedFailure {
  std::string test;   // as the log names it: "Suite.Case", a test case's title; empty: it does not
  std::string entry;  // of CTest (or a Bazel target) that ran it, if any
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
// file. An error says why nothing can be learnt from the text: it is empty, not text, of a build
// that failed, or holds no output of a test. A log of passing runs only is not an error.
Result<CiLog> read_ci_log(std::string_view text);

// Whether the log means this test, whether it calls it by its own name, by that of the CTest entry
// that ran it, or as a JUnit file does.
bool is_named(const LoggedFailure& logged, const Test& test);

// Whether a run failed in the way that a log shows. A log may show less than a run, such as a
// time-out without a place: what it does show has to agree, files by their last name. Equal
// signatures always do.
bool tells_of(const Failure& logged, const Failure& seen);

// The log's failures of this test. Of a log that names no test at all: every one. An error says
// that the log shows it passing, or which other tests it names.
Result<std::vector<LoggedFailure>> logged_failures_of(const Test& test, const CiLog& log);

// Positions among `tests` of those that failed according to the log, in the log's order, each
// once. An error where it names none of them.
Result<std::vector<size_t>> tests_named_in(const CiLog& log, const std::vector<Test>& tests);

// The failures that a run with this output has. `is_complete`: the framework got to its summary, as
// the log shows elsewhere. Without a failure that only an exit status shows.
std::vector<Failure> failures_in(std::string text, Framework framework, const LoggedEnd& end,
                                 bool is_complete);

// Adds what a program's output shows.
void read_program(const LoggedProgram& program, CiLog& log);

// A <failure> or <error> of a test case.
struct FailureElement {
  bool is_error = false;
  std::string message;
  std::string text;
};

// What the framework that wrote it would have printed.
struct ConsoleText {
  Framework framework;
  std::string text;
};
std::optional<ConsoleText> console_text(const FailureElement& failure);

// What the elements of one case say, in the format of the framework that wrote them: the failures
// that a run with the same output has. None: in no known format.
struct DialectFailures {
  Framework framework;
  std::vector<Failure> failures;
};
std::optional<DialectFailures> dialect_failures(const std::vector<FailureElement>& elements);

// Of anything else: as the output of a program, which it is when CTest, Bazel or unflake wrote the
// file. Adds what it says to the log.
void read_case_output(const std::string& entry, const std::vector<FailureElement>& elements,
                      std::string output, CiLog& log);

// What a framework calls the case of this class and name.
std::string case_name(const std::string& classname, const std::string& name, Framework framework);

// Reads what can be read of a file that is cut short. More elements than any suite has are an
// error.
Result<CiLog> read_junit_log(std::string_view text);

}  // namespace unflake
