#pragma once

#include <span>
#include <string>
#include <vector>
#include "model/outcome.h"
#include "output/ci_log/log_lines.h"
#include "output/ci_log/log_programs.h"

namespace unflake {

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
