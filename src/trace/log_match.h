#pragma once

#include <vector>

#include "trace/ci_log.h"

namespace unflake {

// Whether the log means this test, whether it calls it by its own name, by that of the CTest entry
// which ran it, or as a JUnit file does.
bool is_named(const LoggedFailure& logged, const Test& test);

// Whether a run failed in the way that a log tells of. A log may tell less than a run, such as a
// time-out without a place: what it does tell has to agree, files by their last name. Equal
// signatures always do.
bool tells_of(const Failure& logged, const Failure& seen);

// The log's failures of this test. Of a log that names no test at all: every one. An error says
// that the log shows it passing, or which other tests it names.
Result<std::vector<LoggedFailure>> logged_failures_of(const Test& test, const CiLog& log);

// Positions among `tests` of those that the log tells to have failed, in the log's order, each
// once. An error where it names none of them.
Result<std::vector<size_t>> tests_named_in(const CiLog& log, const std::vector<Test>& tests);

}  // namespace unflake
