#pragma once

#include <cstdint>
#include <string>

#include "util/result.h"

namespace unflake {

// A CI log as it was found. A log tells of failures at its end: of one that is longer than
// `most_log_bytes` only the last part is read, from the start of a line.
struct LogFile {
  std::string text;
  uint64_t bytes_left_out = 0;  // at the start; 0: this is the whole log
};

inline constexpr uint64_t most_log_bytes = 64 << 20;

// `path` may be a pipe, and "-" is standard input. Pipes that never end are an error.
Result<LogFile> load_log(const std::string& path, uint64_t most_bytes = most_log_bytes);

}  // namespace unflake
