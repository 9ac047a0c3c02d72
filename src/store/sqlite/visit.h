#pragma once

#include <cstdint>

#include "store/sqlite/database.h"
#include "store/store.h"

namespace unflake {

// See Store::visit.
Result<void> visit_history(Database& database, int64_t project, const Store::Visitor& visitor);

}  // namespace unflake
