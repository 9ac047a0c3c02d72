#pragma once

#include <cstdint>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/store.h"

namespace unflake {

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(PgConnection& connection, int64_t project,
                                         const Window& window, size_t most);

std::vector<Prevalence> prevalence(PgConnection& connection, const Window& window);

}  // namespace unflake
