#pragma once

#include <cstdint>
#include <vector>

#include "history/sqlite/database.h"
#include "history/store.h"

namespace unflake {

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(Database& database, int64_t project, const Window& window,
                                         size_t most);

std::vector<Prevalence> prevalence(Database& database, const Window& window);

}  // namespace unflake
