#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// The sums over the failures of a session. They are made anew from the session's runs of the
// tests concerned, which are few, so that nothing can add up wrongly.
void count_incidents(PgConnection& connection, int64_t session, const std::vector<int64_t>& tests);

// The same for the sessions among these runs that have not ended.
void count_incidents_of_open_sessions(PgConnection& connection, std::span<const RunRow> runs);

// For a session that ended: counts all of its incidents again, and finds out by the sessions that
// have the same build or clean commit which failures are flaky, theirs and its own.
void settle_incidents(PgConnection& connection, int64_t session);

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(PgConnection& connection, int64_t project,
                                         const Window& window, size_t most);

int64_t count_suppressed_builds(PgConnection& connection, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window);

std::vector<Prevalence> prevalence(PgConnection& connection, const Window& window);

}  // namespace unflake
