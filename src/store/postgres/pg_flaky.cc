#include "store/postgres/pg_parts.h"

#include <algorithm>
#include <map>
#include "store/postgres/pg_connection.h"
#include "store/values.h"

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

namespace {

// A test that could not be started, such as one that was not built, has shown nothing of itself.
#define UNFLAKE_HAS_RUN(not_started) \
  "NOT EXISTS (SELECT FROM signatures WHERE id = i.signature AND kind = " not_started "::bigint)"

#define UNFLAKE_IS_BUILD "sessions.build NOT LIKE 'local:%'"

#define UNFLAKE_IN_WINDOW "sessions.started_us >= $1::bigint AND sessions.started_us < $2::bigint"

// Names of builds are compared once, and from then on their numbers.
constexpr const char* failures_sql = R"sql(
    WITH flaky AS (
      SELECT i.*, dense_rank() OVER (ORDER BY sessions.build COLLATE "C") AS build, commit_id,
             suppressions.session IS NOT NULL AS suppressed, )sql" UNFLAKE_IS_BUILD
                                     R"sql( AS in_build
      FROM sessions JOIN incidents AS i ON i.session = sessions.id AND i.flaky = 1
      LEFT JOIN suppressions USING (session, test, signature)
      WHERE project = $3::bigint AND )sql" UNFLAKE_IN_WINDOW " AND " UNFLAKE_HAS_RUN("$5") R"sql(),
    grouped AS (
      SELECT test, signature, sum(failures) AS runs,
             count(DISTINCT build) FILTER (WHERE in_build) AS builds,
             count(DISTINCT build) FILTER (WHERE in_build AND suppressed) AS suppressed_builds,
             least(sum(wasted_us), 1000000000000000000) AS wasted_us,
             min(first_us) AS first_us, max(last_us) AS last_us
      FROM flaky GROUP BY test, signature),
    first_ones AS (
      SELECT DISTINCT ON (test, signature) test, signature, outcome, commit_id AS first_commit
      FROM flaky ORDER BY test, signature, first_us, session),
    last_ones AS (
      SELECT DISTINCT ON (test, signature) test, signature, commit_id AS last_commit
      FROM flaky ORDER BY test, signature, last_us DESC, session DESC)
    SELECT target, name, s.signature, kind, file, line, function, expression, message, outcome,
           runs, builds, suppressed_builds, wasted_us, first_us, last_us, first_commit, last_commit
    FROM grouped JOIN first_ones USING (test, signature) JOIN last_ones USING (test, signature)
    JOIN tests ON tests.id = test JOIN signatures AS s ON s.id = grouped.signature
    ORDER BY builds DESC, runs DESC, target COLLATE "C", name COLLATE "C", s.signature COLLATE "C"
    LIMIT $4::bigint)sql";

constexpr const char* suppressed_builds_sql = R"sql(
    SELECT count(DISTINCT sessions.build) FROM suppressions
    JOIN tests ON tests.id = suppressions.test
    JOIN signatures ON signatures.id = suppressions.signature
    JOIN sessions ON sessions.id = suppressions.session
    WHERE tests.project = $3::bigint AND target = $4::text AND tests.name = $5::text
      AND signatures.signature = $6::text AND )sql" UNFLAKE_IS_BUILD " AND " UNFLAKE_IN_WINDOW;

constexpr const char* builds_sql = R"sql(
    WITH builds AS (
      SELECT project, build, sum(runs) AS runs, sum(failures) AS failures,
             greatest(max(last_us::numeric) - min(started_us), 0) AS took_us,
             bool_and()sql" UNFLAKE_IS_BUILD R"sql() AS is_build
      FROM sessions JOIN session_totals ON session = id
      WHERE )sql" UNFLAKE_IN_WINDOW R"sql( GROUP BY project, build)
    SELECT project, projects.name, count(*) FILTER (WHERE is_build),
           count(*) FILTER (WHERE is_build AND failures > 0), sum(runs),
           least(coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY took_us)
                          FILTER (WHERE is_build), 0), 1000000000000000000)
    FROM builds JOIN projects ON projects.id = project
    GROUP BY project, projects.name ORDER BY projects.name COLLATE "C")sql";

// A failure is suppressed when all signatures are that the test had in the build.
constexpr const char* flaky_sql = R"sql(
    WITH failures AS (
      SELECT project, build, test, bool_and(suppressions.session IS NOT NULL) AS suppressed,
             bool_and()sql" UNFLAKE_IS_BUILD R"sql() AS in_build
      FROM sessions JOIN incidents AS i ON i.session = sessions.id AND i.flaky = 1
      LEFT JOIN suppressions USING (session, test, signature)
      WHERE )sql" UNFLAKE_IN_WINDOW " AND " UNFLAKE_HAS_RUN("$3") R"sql(
      GROUP BY project, build, test),
    builds AS (
      SELECT project, count(*) AS count
      FROM (SELECT DISTINCT project, build FROM failures WHERE in_build) AS d GROUP BY project)
    SELECT project, count(DISTINCT test), count(*) FILTER (WHERE in_build),
           coalesce(max(builds.count), 0), count(*) FILTER (WHERE in_build AND suppressed)
    FROM failures LEFT JOIN builds USING (project) GROUP BY project)sql";

// The totals know when a test ran first and last; only tests that ran before and after the window
// have to be looked up.
constexpr const char* tests_sql = R"sql(
    WITH spans AS (
      SELECT test, bool_or((first_us >= $1::bigint AND first_us < $2::bigint)
                           OR (last_us >= $1::bigint AND last_us < $2::bigint)) AS inside,
             bool_or(first_us < $1::bigint AND last_us >= $2::bigint) AS around
      FROM totals GROUP BY test),
    ran AS (
      SELECT test FROM spans WHERE inside OR (around AND EXISTS (
        SELECT FROM runs WHERE runs.test = spans.test
          AND started_us >= $1::bigint AND started_us < $2::bigint))
      UNION
      SELECT test FROM fresh_runs WHERE started_us >= $1::bigint AND started_us < $2::bigint)
    SELECT project, count(*) FROM ran JOIN tests ON tests.id = test GROUP BY project)sql";

void add_tests(PgConnection& connection, int64_t from, int64_t until,
               std::map<int64_t, Prevalence>& projects) {
  const PgRows rows = connection.run(tests_sql, from, until);
  for (int row = 0; row < rows.size(); ++row)
    if (const auto found = projects.find(rows.integer(row, 0)); found != projects.end())
      found->second.tests = rows.integer(row, 1);
}

void add_flakiness(PgConnection& connection, int64_t from, int64_t until,
                   std::map<int64_t, Prevalence>& projects) {
  const PgRows rows = connection.run(flaky_sql, from, until, code_of(FailureKind::not_started));
  for (int row = 0; row < rows.size(); ++row) {
    const auto found = projects.find(rows.integer(row, 0));
    if (found == projects.end()) continue;
    found->second.flaky_tests = rows.integer(row, 1);
    found->second.flaky_failures = rows.integer(row, 2);
    found->second.flaky_builds = rows.integer(row, 3);
    found->second.suppressed = rows.integer(row, 4);
  }
}

}  // namespace

std::vector<FlakyFailure> flaky_failures(PgConnection& connection, int64_t project,
                                         const Window& window, size_t most) {
  const PgRows rows =
      connection.run(failures_sql, to_microseconds(window.from), to_microseconds(window.until),
                     project, std::min<size_t>(most, INT32_MAX), code_of(FailureKind::not_started));
  std::vector<FlakyFailure> failures;
  for (int row = 0; row < rows.size(); ++row)
    failures.push_back({.test = {rows.text(row, 0), rows.text(row, 1)},
                        .signature = rows.text(row, 2),
                        .failure = read_failure(rows, row, 3),
                        .outcome = outcome_from_code(rows.integer(row, 9)),
                        .runs = rows.integer(row, 10),
                        .builds = rows.integer(row, 11),
                        .suppressed_builds = rows.integer(row, 12),
                        .wasted = Duration(rows.integer(row, 13)),
                        .first = to_time(rows.integer(row, 14)),
                        .last = to_time(rows.integer(row, 15)),
                        .first_commit = rows.text(row, 16),
                        .last_commit = rows.text(row, 17)});
  return failures;
}

int64_t count_suppressed_builds(PgConnection& connection, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window) {
  return connection
      .run(suppressed_builds_sql, to_microseconds(window.from), to_microseconds(window.until),
           project, test.target, test.name, signature)
      .integer(0, 0);
}

std::vector<Prevalence> prevalence(PgConnection& connection, const Window& window) {
  PgTransaction snapshot(connection, PgAccess::read);
  const int64_t from = to_microseconds(window.from), until = to_microseconds(window.until);
  const PgRows rows = connection.run(builds_sql, from, until);
  std::map<int64_t, Prevalence> projects;
  for (int row = 0; row < rows.size(); ++row)
    projects[rows.integer(row, 0)] = {.project = rows.text(row, 1),
                                      .builds = rows.integer(row, 2),
                                      .failed_builds = rows.integer(row, 3),
                                      .runs = rows.integer(row, 4),
                                      .median_build = Duration(rows.integer(row, 5))};
  add_tests(connection, from, until, projects);
  add_flakiness(connection, from, until, projects);
  std::vector<Prevalence> all;
  for (int row = 0; row < rows.size(); ++row) all.push_back(projects[rows.integer(row, 0)]);
  return all;
}

}  // namespace unflake
