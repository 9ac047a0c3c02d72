#pragma once

#include <cstdint>
#include <functional>

#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"

namespace unflake {

// The runs that the sums over tests do not have: `staged_runs` and `fresh_runs`.

void for_each_unplaced(Database& database, const std::function<void(const RunRow&)>& take);

// `staged_runs` is ordered by session, so this looks into each session that has some there. They
// are few: see Placement.
void for_each_unplaced(Database& database, int64_t test,
                       const std::function<void(const RunRow&)>& take);

}  // namespace unflake
