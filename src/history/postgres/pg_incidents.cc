#include "history/postgres/pg_incidents.h"

#include <map>

namespace unflake {
namespace {

// No run takes longer than thirty years; what claims to must not make a sum overflow.
#define UNFLAKE_SANE(duration) "greatest(0, least(" duration ", 1000000000000000))"

// The passing attempt that came next to a failing one was made because of it.
constexpr const char* count_sql = R"sql(
    WITH own AS (
      SELECT runs.*, lead(attempt) OVER line AS next_attempt, lead(outcome) OVER line AS next_outcome,
             lead(plan) OVER line AS next_plan, lead(duration_us) OVER line AS next_us,
             count(*) FILTER (WHERE plan = 0 AND outcome = 0) OVER (PARTITION BY test) AS passes
      FROM session_totals AS sums JOIN runs ON runs.test = ANY ($2::bigint[])
       AND runs.started_us BETWEEN sums.first_us AND sums.last_us
       AND runs.session = sums.session
      WHERE sums.session = $1::bigint
      WINDOW line AS (PARTITION BY test ORDER BY started_us, attempt))
    INSERT INTO incidents AS known
      (session, test, signature, outcome, failures, passes, first_us, last_us, wasted_us, flaky)
    SELECT session, test, signature, (array_agg(outcome ORDER BY started_us, attempt))[1], count(*),
           max(passes), min(started_us), max(started_us),
           least(sum()sql" UNFLAKE_SANE("duration_us") R"sql( +
             CASE WHEN next_attempt = attempt + 1 AND next_plan = 0 AND next_outcome = 0
                  THEN )sql" UNFLAKE_SANE("next_us") R"sql( ELSE 0 END), 1000000000000000000),
           (max(passes) > 0)::int
    FROM own WHERE plan = 0 AND outcome NOT IN (0, 4)
    GROUP BY session, test, signature ORDER BY session, test, signature
    ON CONFLICT (session, test, signature) DO UPDATE SET
      outcome = excluded.outcome, failures = excluded.failures, passes = excluded.passes,
      first_us = excluded.first_us, last_us = excluded.last_us, wasted_us = excluded.wasted_us,
      flaky = greatest(known.flaky, excluded.flaky)
    WHERE (known.outcome, known.failures, known.passes, known.first_us, known.last_us,
           known.wasted_us, known.flaky)
       <> (excluded.outcome, excluded.failures, excluded.passes, excluded.first_us,
           excluded.last_us, excluded.wasted_us, greatest(known.flaky, excluded.flaky)))sql";

constexpr const char* same_code_sql = R"sql(
    SELECT other.id FROM sessions AS own JOIN sessions AS other
      ON other.project = own.project AND md5(other.build) = md5(own.build)
    WHERE own.id = $1::bigint AND other.id <> own.id
    UNION
    SELECT other.id FROM sessions AS own JOIN sessions AS other
      ON other.project = own.project AND md5(other.commit_id) = md5(own.commit_id)
    WHERE own.id = $1::bigint AND other.id <> own.id
      AND own.commit_id <> '' AND own.dirty = 0 AND other.dirty = 0)sql";

// The incidents of the first sessions whose tests passed in one of the second ones.
constexpr const char* settle_sql = R"sql(
    UPDATE incidents SET flaky = 1
    WHERE session = ANY ($1::bigint[]) AND flaky = 0 AND EXISTS (
      SELECT FROM session_totals AS sums JOIN runs ON runs.test = incidents.test
        AND runs.started_us BETWEEN sums.first_us AND sums.last_us AND runs.session = sums.session
      WHERE sums.session = ANY ($2::bigint[]) AND plan = 0 AND runs.outcome = 0))sql";

std::vector<int64_t> numbers(const PgRows& rows) {
  std::vector<int64_t> all;
  for (int row = 0; row < rows.size(); ++row) all.push_back(rows.integer(row, 0));
  return all;
}

// Of sessions that have not ended: for one whose writer died, nobody else will count.
constexpr const char* open_sessions_sql = R"sql(
    SELECT DISTINCT given.session, given.test
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (session, test, failed)
    JOIN sessions ON sessions.id = given.session AND ended_us IS NULL
    WHERE failed = 1 OR EXISTS (SELECT FROM incidents AS i
                                WHERE i.session = given.session AND i.test = given.test)
    ORDER BY 1, 2)sql";

}  // namespace

void count_incidents_of_open_sessions(PgConnection& connection, std::span<const RunRow> runs) {
  std::vector<int64_t> sessions, tests, failed;
  for (const RunRow& run : runs) {
    if (run.plan != 0) continue;
    sessions.push_back(run.session);
    tests.push_back(run.test);
    failed.push_back(run.failed_by_itself());
  }
  const PgRows rows = connection.run(open_sessions_sql, sessions, tests, failed);
  std::map<int64_t, std::vector<int64_t>> by_session;
  for (int row = 0; row < rows.size(); ++row)
    by_session[rows.integer(row, 0)].push_back(rows.integer(row, 1));
  for (const auto& [session, failed_tests] : by_session)
    count_incidents(connection, session, failed_tests);
}

void count_incidents(PgConnection& connection, int64_t session, const std::vector<int64_t>& tests) {
  if (!tests.empty()) connection.run(count_sql, session, tests);
}

void settle_incidents(PgConnection& connection, int64_t session) {
  count_incidents(connection, session,
                  numbers(connection.run(
                      "SELECT DISTINCT test FROM incidents WHERE session = $1::bigint", session)));
  const std::vector<int64_t> own = {session};
  const std::vector<int64_t> others = numbers(connection.run(same_code_sql, session));
  if (others.empty()) return;
  connection.run(settle_sql, own, others);
  connection.run(settle_sql, others, own);
}

}  // namespace unflake
