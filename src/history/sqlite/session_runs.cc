#include "history/sqlite/session_runs.h"

namespace unflake {
namespace {

#define UNFLAKE_STAGED_OF " FROM staged_runs WHERE session = ?1 AND test = ?2 "
#define UNFLAKE_PLACED_OF                                                        \
  " FROM runs WHERE test = ?2 AND session = ?1"                                  \
  " AND started_us >= (SELECT first_us FROM placed_sessions WHERE session = ?1)" \
  " AND started_us <= (SELECT last_us FROM placed_sessions WHERE session = ?1) "

std::optional<RunRow> find(Statement& statement, const RunRow& run) {
  Query query(statement, run.session, run.test, run.started_us, run.attempt);
  if (!query.next()) return std::nullopt;
  return read_run(query);
}

}  // namespace

SessionRuns::SessionRuns(Database& database)
    : has_placed_(database, "SELECT 1 FROM placed_sessions WHERE session = ?"),
      holds_(database,
             "SELECT 1 FROM runs WHERE (test, started_us, session, attempt) = (?, ?, ?, ?)"),
      passes_(database, "SELECT (SELECT count(*)" UNFLAKE_STAGED_OF
                        "AND plan = 0 AND outcome = 0)"
                        " + (SELECT count(*)" UNFLAKE_PLACED_OF "AND plan = 0 AND outcome = 0)"),
      passed_(database, "SELECT EXISTS (SELECT 1" UNFLAKE_STAGED_OF
                        "AND plan = 0 AND outcome = 0)"
                        " OR EXISTS (SELECT 1" UNFLAKE_PLACED_OF "AND plan = 0 AND outcome = 0)"),
      staged_before_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_STAGED_OF
                               "AND (started_us, attempt) < (?3, ?4)"
                               " ORDER BY started_us DESC, attempt DESC LIMIT 1"),
      placed_before_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_PLACED_OF
                               "AND (started_us, session, attempt) < (?3, ?1, ?4)"
                               " ORDER BY started_us DESC, session DESC, attempt DESC LIMIT 1"),
      staged_after_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_STAGED_OF
                              "AND (started_us, attempt) > (?3, ?4)"
                              " ORDER BY started_us, attempt LIMIT 1"),
      placed_after_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_PLACED_OF
                              "AND (started_us, session, attempt) > (?3, ?1, ?4)"
                              " ORDER BY started_us, session, attempt LIMIT 1") {}

bool SessionRuns::has_placed(int64_t session) {
  return Query(has_placed_, session).next();
}

bool SessionRuns::holds(const RunRow& run) {
  return Query(holds_, run.test, run.started_us, run.session, run.attempt).next();
}

int64_t SessionRuns::passes(int64_t session, int64_t test) {
  Query query(passes_, session, test);
  return query.next() ? query.integer(0) : 0;
}

bool SessionRuns::passed(int64_t session, int64_t test) {
  Query query(passed_, session, test);
  return query.next() && query.integer(0) != 0;
}

std::optional<RunRow> SessionRuns::before(const RunRow& run) {
  return nearest(staged_before_, placed_before_, run, true);
}

std::optional<RunRow> SessionRuns::after(const RunRow& run) {
  return nearest(staged_after_, placed_after_, run, false);
}

std::optional<RunRow> SessionRuns::nearest(Statement& staged, Statement& placed, const RunRow& run,
                                           bool latest) {
  const auto one = find(staged, run), other = find(placed, run);
  if (!one || !other) return one ? one : other;
  return (one->by_session() > other->by_session()) == latest ? one : other;
}

}  // namespace unflake
