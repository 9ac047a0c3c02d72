#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/ci_log/log_lines.h"
#include "trace/ci_log/log_programs.h"
#include "trace/outcome.h"

namespace unflake {

// The part of a program's output that belongs to one test.
struct LogSection {
  enum class State {
    passed,
    failed,
    unfinished,  // the program ended before the test did
    loose,       // of no test
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
  LoggedEnd death;  // told outside of a test
};

LogSections sections_in(std::span<const LogLine> lines);

}  // namespace unflake
