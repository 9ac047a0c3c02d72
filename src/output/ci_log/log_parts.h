#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"

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

}  // namespace unflake
