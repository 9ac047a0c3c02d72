#pragma once

#include <cstdint>

#include "history/sqlite/database.h"
#include "history/store.h"

namespace unflake {

// See Store::visit.
Result<void> visit_history(Database& database, int64_t project, const Store::Visitor& visitor);

}  // namespace unflake
