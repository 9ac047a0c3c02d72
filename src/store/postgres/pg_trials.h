#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// Inside a transaction. The rows are of the trials, in their order, and lack only their plans.
void insert_trials(PgConnection& connection, std::span<const RunRecord> trials,
                   std::vector<RunRow> rows);

// Newest first.
std::vector<RecentRun> recent_trials(PgConnection& connection, int64_t test,
                                     const std::string& purpose, size_t most);

// Deletes plans that no trial is of.
void forget_unused_plans(PgConnection& connection);

}  // namespace unflake
