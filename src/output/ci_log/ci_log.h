#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "util/result.h"

namespace unflake {

// One line of a log as the test printed it.
struct LogLine {
  std::string_view text;
  std::string_view source;  // the service that printed it, where the log has those of several
  size_t number = 0;        // in the log, from 1
};

inline constexpr size_t most_log_lines = 2'000'000;
inline constexpr size_t most_logged_name_bytes = 500;  // of a test or an entry

// The lines of a text without escape sequences, and without what CI systems add: time stamps,
// names of jobs and services, marks of folds. Of a longer log the last lines. The views are into
// the text.
std::vector<LogLine> undecorated_lines(std::string_view text);

// How a program ended, as far as a log says.
struct LoggedEnd {
  enum class Kind { unknown, passed, failed, signalled, timed_out, not_started };
  Kind kind = Kind::unknown;
  int signal = 0;
};

// What one program that ran tests printed.
struct LoggedProgram {
  std::string entry;  // of CTest, or a Bazel target; empty: whatever no such entry printed
  LoggedEnd end;
  std::vector<LogLine> lines;
  size_t line = 0;  // where it begins
};

// Separates the output of CTest's entries and of Bazel's targets, however they were mixed, and
// that of each service. Entries that were skipped are left out.
std::vector<LoggedProgram> programs_in(const std::vector<LogLine>& lines);

// What a shell, make or the CI system says about a program that did not exit as it should.
std::optional<LoggedEnd> death_in(std::string_view line);

// CTest's word for how an entry ended: "Failed", "SEGFAULT", "Subprocess aborted". None: it was
// skipped, or the word is not CTest's.
std::optional<LoggedEnd> end_from_ctest(std::string_view word);

// A place in a program's output where something begins or ends.
struct LogMark {
  enum class Kind {
    none,
    run,           // a test begins (GoogleTest)
    passed,        // the test ends
    failed,        //
    skipped,       //
    report,        // how a test failed follows (Catch2, doctest, Boost.Test)
    begin,         // of a program's tests
    end,           // of a program's tests; a summary may follow
    all_passed,    // as `end`, and nothing failed
    named_failed,  // in a summary
    death,         // somebody says how the program ended
  };
  Kind kind = Kind::none;
  Framework framework = Framework::command;
  std::string test;
  LoggedEnd end = {};  // of a death
  size_t lines = 1;    // that the mark takes
};

// The mark at the first of the lines.
LogMark mark_at(std::span<const LogLine> lines);

// The part of a program's output that belongs to one test.
struct LogSection {
  enum class State {
    passed,
    failed,
    unfinished,  // the program ended before the test did
    loose,       // not of a test
    named,       // a summary says that the test failed
  };
  State state = State::loose;
  Framework framework = Framework::command;
  std::string test;
  LoggedEnd end;  // of the program, where it ended in this section
  std::span<const LogLine> lines;
};

struct LogSections {
  std::vector<LogSection> all;  // in order; no line is in two of them
  bool shows_passing_runs = false;
  LoggedEnd death;  // reported outside of a test
};

LogSections sections_in(std::span<const LogLine> lines);

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
