#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "output/ci_log/ci_log.h"
#include "search/reproduce/hunt.h"
#include "store/store.h"
#include "util/result.h"

namespace unflake {

// A CI log as it was found. A log shows failures at its end: of one that is longer than
// `most_log_bytes` only the last part is read, from the start of a line.
struct LogFile {
  std::string text;
  uint64_t bytes_left_out = 0;  // at the start; 0: this is the whole log
};

inline constexpr uint64_t most_log_bytes = 64 << 20;

// `path` may be a pipe, and "-" is standard input. Pipes that never end are an error.
Result<LogFile> load_log(const std::string& path, uint64_t most_bytes = most_log_bytes);

// The failure that the user's word means: a signature (16 hexadecimal digits), FILE:LINE, or the
// kind of failure as `unflake run --json` names it. A signature is looked up in what history knows
// about the test, which may be nothing.
Result<Wanted> wanted_by_word(const std::string& word, const TestId& test,
                              const StoreAddress& history);

// Of all failures of the test that the history knows; none when there is no history.
std::set<std::string> known_signatures(const TestId& test, const StoreAddress& history);

// The log's failures of the test, each once.
Result<std::vector<Wanted>> wanted_by_log(const Test& test, const CiLog& log);

// The failure in the bare output of the test; an error when it has none.
Result<std::vector<Wanted>> wanted_by_output(const Test& test, const std::string& output,
                                             const Error& otherwise);

// Why nothing was reproduced, in lines of "topic: text": what was reached, tried and not covered,
// and what to try next. Only what was counted is claimed.
std::vector<std::string> not_reproduced_lines(const Hunt& hunt);

}  // namespace unflake
