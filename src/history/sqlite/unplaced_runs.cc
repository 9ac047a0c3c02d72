#include "history/sqlite/unplaced_runs.h"

namespace unflake {

void for_each_unplaced(Database& database, const std::function<void(const RunRow&)>& take) {
  Statement all(database, "SELECT " UNFLAKE_RUN_COLUMNS
                          " FROM staged_runs UNION ALL"
                          " SELECT " UNFLAKE_RUN_COLUMNS " FROM fresh_runs");
  for (Query query(all); query.next();) take(read_run(query));
}

void for_each_unplaced(Database& database, int64_t test,
                       const std::function<void(const RunRow&)>& take) {
  Statement of_test(database, R"sql(
      WITH RECURSIVE staged (id) AS (
        SELECT min(session) FROM staged_runs
        UNION ALL
        SELECT (SELECT min(session) FROM staged_runs WHERE session > id)
        FROM staged WHERE id IS NOT NULL)
      SELECT )sql" UNFLAKE_RUN_COLUMNS R"sql(
      FROM staged CROSS JOIN staged_runs ON session = id AND test = ?1
      UNION ALL
      SELECT )sql" UNFLAKE_RUN_COLUMNS " FROM fresh_runs WHERE test = ?1");
  for (Query query(of_test, test); query.next();) take(read_run(query));
}

}  // namespace unflake
