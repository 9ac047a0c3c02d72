#include "history/postgres/pg_rows.h"

namespace unflake {

RunRow read_run(const PgRows& rows, int row) {
  return {.test = rows.integer(row, 0),
          .started_us = rows.integer(row, 1),
          .session = rows.integer(row, 2),
          .attempt = rows.integer(row, 3),
          .duration_us = rows.integer(row, 4),
          .outcome = rows.integer(row, 5),
          .signature = rows.integer(row, 6),
          .plan = rows.integer(row, 7)};
}

RunColumns::RunColumns(std::span<const RunRow> runs) {
  for (const RunRow& run : runs) {
    test.push_back(run.test);
    started_us.push_back(run.started_us);
    session.push_back(run.session);
    attempt.push_back(run.attempt);
    duration_us.push_back(run.duration_us);
    outcome.push_back(run.outcome);
    signature.push_back(run.signature);
    plan.push_back(run.plan);
  }
}

Failure read_failure(const PgRows& rows, int row, int kind_column) {
  return {.kind = failure_from_code(rows.integer(row, kind_column)),
          .file = rows.text(row, kind_column + 1),
          .line = static_cast<int>(rows.integer(row, kind_column + 2)),
          .function = rows.text(row, kind_column + 3),
          .expression = rows.text(row, kind_column + 4),
          .message = rows.text(row, kind_column + 5)};
}

}  // namespace unflake
