#pragma once

#include <string_view>

#include "ingest/case_handler.h"
#include "model/outcome.h"

namespace unflake {

// What a <failure> or <error> says that no framework for native code wrote: pytest, JUnit, Rust,
// Go and everybody else. The place is the last one in the test's own code that the text shows. Some
// reports of Go's have its words only in the output of the case.
Failure read_language_failure(const ReportedFailure& reported, std::string_view classname,
                              std::string_view output);

// The runner ended the test because it took too long.
bool tells_timeout(const ReportedFailure& reported);

}  // namespace unflake
