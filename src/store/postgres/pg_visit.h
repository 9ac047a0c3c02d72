#pragma once

#include <cstdint>

#include "store/postgres/pg_connection.h"
#include "store/store.h"

namespace unflake {

Result<void> visit_history(PgConnection& connection, int64_t project,
                           const Store::Visitor& visitor);

}  // namespace unflake
