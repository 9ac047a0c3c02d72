#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/run_row.h"

namespace unflake {

RunRow read_run(const PgRows& rows, int row);  // of UNFLAKE_RUN_COLUMNS, from the first column on

// Runs, column by column.
struct RunColumns {
  std::vector<int64_t> test, started_us, session, attempt, duration_us, outcome, signature, plan;

  explicit RunColumns(std::span<const RunRow> runs);
};

// The columns of `signatures` after the id.
#define UNFLAKE_FAILURE_COLUMNS "signature, kind, file, line, function, expression, message"
Failure read_failure(const PgRows& rows, int row, int kind_column);

}  // namespace unflake
