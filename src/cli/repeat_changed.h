#pragma once

#include <string>
#include <vector>

#include "cli/changed_tests.h"
#include "search/session.h"
#include "store/store.h"

namespace unflake {

// Makes the changed tests, and those of which nobody can tell, run `runs` times; without retries,
// which these runs make needless. Says which, and what it proves when they pass.
Result<std::string> repeat_what_changed(std::vector<PlannedTest>& plan, const ChangedTests& tests,
                                        int runs, const std::string& revision, Store* store);

}  // namespace unflake
