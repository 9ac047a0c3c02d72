#pragma once

#include <set>
#include <string>
#include <vector>

#include "output/ci_log/ci_log.h"
#include "search/reproduce/hunt.h"
#include "store/store.h"
#include "util/result.h"

namespace unflake {

// The failure that the user's word means: a signature (16 hexadecimal digits), FILE:LINE, or the
// kind of failure as `unflake run --json` names it. A signature is looked up in what history knows
// of the test, which may be nothing.
Result<Wanted> wanted_by_word(const std::string& word, const TestId& test,
                              const StoreAddress& history);

// Of all failures that history knows of the test; none when there is no history.
std::set<std::string> known_signatures(const TestId& test, const StoreAddress& history);

// The log's failures of the test, each once.
Result<std::vector<Wanted>> wanted_by_log(const Test& test, const CiLog& log);

// The failure in the bare output of the test; the error when there is none in it.
Result<std::vector<Wanted>> wanted_by_output(const Test& test, const std::string& output,
                                             const Error& otherwise);

}  // namespace unflake
