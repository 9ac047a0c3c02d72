#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "output/ci_log/log_lines.h"

namespace unflake {

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

}  // namespace unflake
