#pragma once

#include <cstdint>
#include <vector>

#include "history/postgres/pg_connection.h"

namespace unflake {

// The sums over the failures of a session. They are made anew from the session's runs of the
// tests concerned, which are few, so that nothing can add up wrongly.
void count_incidents(PgConnection& connection, int64_t session, const std::vector<int64_t>& tests);

// For a session that ended: counts all of its incidents again, and finds out by the sessions that
// have the same build or clean commit which failures are flaky, theirs and its own.
void settle_incidents(PgConnection& connection, int64_t session);

}  // namespace unflake
