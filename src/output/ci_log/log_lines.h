#pragma once

#include <string_view>
#include <vector>

namespace unflake {

// One line of a log as the test printed it.
struct LogLine {
  std::string_view text;
  std::string_view source;  // the service that printed it, where the log has those of several
  size_t number = 0;        // in the log, from 1
};

inline constexpr size_t most_log_lines = 2'000'000;

// The lines of a text without escape sequences, and without what CI systems add: time stamps,
// names of jobs and services, marks of folds. Of a longer log the last lines. The views are into
// the text.
std::vector<LogLine> undecorated_lines(std::string_view text);

}  // namespace unflake
