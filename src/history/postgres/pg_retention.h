#pragma once

#include <cstdint>

#include "history/postgres/pg_connection.h"
#include "history/store.h"

namespace unflake {

RetentionCount forget_runs(PgConnection& connection, int64_t project, const Retention& retention,
                           TimePoint now);

std::optional<TimePoint> forgotten_before(PgConnection& connection, int64_t project);

}  // namespace unflake
