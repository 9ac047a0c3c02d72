#pragma once

#include <span>
#include <string>

#include "trace/ci_log/log_lines.h"
#include "trace/ci_log/log_programs.h"
#include "trace/outcome.h"

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

}  // namespace unflake
