#pragma once

#include <cstdint>

#include "history/postgres/pg_connection.h"
#include "history/store.h"

namespace unflake {

Result<void> visit_history(PgConnection& connection, int64_t project,
                           const Store::Visitor& visitor);

}  // namespace unflake
