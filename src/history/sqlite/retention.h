#pragma once

#include <cstdint>

#include "history/sqlite/database.h"
#include "history/store.h"

namespace unflake {

// Deletes what a policy does not keep, in short transactions: others may write meanwhile. All runs
// must have been placed.
RetentionCount forget_runs(Database& database, int64_t project, const Retention& retention,
                           TimePoint now);

}  // namespace unflake
