#pragma once

#include "history/run_row.h"
#include "history/sqlite/database.h"

namespace unflake {

RunRow read_run(const Query& query);  // of UNFLAKE_RUN_COLUMNS

}  // namespace unflake
