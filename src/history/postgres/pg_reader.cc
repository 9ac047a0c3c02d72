#include "history/postgres/pg_reader.h"

#include <algorithm>

#include "history/codes.h"
#include "history/last_failures.h"
#include "history/postgres/pg_summaries.h"
#include "history/values.h"

namespace unflake {
namespace {

// Up to so many runs are read one by one for exact quantiles; the tests of a list share them.
constexpr int64_t exact_runs = 10'000;

// More runs than this are not counted one by one: it would take longer than people wait.
constexpr int64_t most_counted = 300'000;

std::vector<NamedTest> find_tests(PgConnection& connection, int64_t project,
                                  std::span<const TestId> tests) {
  std::vector<std::string> targets, names;
  for (const TestId& test : tests) {
    targets.push_back(test.target);
    names.push_back(test.name);
  }
  const PgRows rows = connection.run(R"sql(
      SELECT number, id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted
             (target, name, number)
      JOIN tests ON project = $1::bigint AND md5(tests.target) = md5(wanted.target)
        AND md5(tests.name) = md5(wanted.name)
      ORDER BY number)sql",
                                     project, targets, names);
  std::vector<NamedTest> found;
  for (int row = 0; row < rows.size(); ++row)
    found.push_back({rows.integer(row, 1), tests[static_cast<size_t>(rows.integer(row, 0) - 1)]});
  return found;
}

}  // namespace

std::optional<TimePoint> PgReader::find_session(const std::string& uuid) {
  const PgRows rows = connection_.run(
      "SELECT started_us FROM sessions WHERE md5(uuid) = md5($1) AND project = $2::bigint", uuid,
      project_);
  if (rows.empty()) return std::nullopt;
  return to_time(rows.integer(0, 0));
}

std::vector<TestSummary> PgReader::summarise(const std::string& pattern, size_t most) {
  PgTransaction snapshot(connection_, PgAccess::read);
  std::vector<NamedTest> tests = rank_tests(connection_, project_, pattern, most);
  tests.resize(std::min(tests.size(), most));
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  return unflake::summarise_tests(connection_, tests, exact_runs / count);
}

std::optional<TestSummary> PgReader::summarise_test(const TestId& id) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return std::nullopt;
  auto summaries = unflake::summarise_tests(connection_, {{*test, id}}, exact_runs);
  if (summaries.empty()) return std::nullopt;
  return std::move(summaries[0]);
}

std::vector<TestSummary> PgReader::summarise_tests(std::span<const TestId> tests) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  return unflake::summarise_tests(connection_, find_tests(connection_, project_, tests),
                                  exact_runs / count);
}

std::vector<RecentRun> PgReader::recent_runs(const TestId& id, size_t most) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return {};
  const PgRows rows = connection_.run(R"sql(
      WITH newest AS (
        SELECT * FROM runs WHERE test = $1::bigint
        ORDER BY started_us DESC, session DESC, attempt DESC LIMIT $2::bigint)
      SELECT newest.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine, plans.plan
      FROM newest
      LEFT JOIN sessions ON sessions.id = session
      LEFT JOIN signatures ON signatures.id = newest.signature
      LEFT JOIN plans ON plans.id = newest.plan
      ORDER BY newest.started_us DESC, session DESC, attempt DESC)sql",
                                      *test, std::min<size_t>(most, INT32_MAX));
  std::vector<RecentRun> runs;
  for (int row = 0; row < rows.size(); ++row)
    runs.push_back({.started = to_time(rows.integer(row, 0)),
                    .outcome = outcome_from_code(rows.integer(row, 1)),
                    .duration = Duration(rows.integer(row, 2)),
                    .attempt = static_cast<int>(rows.integer(row, 3)),
                    .signature = rows.text(row, 4),
                    .commit = rows.text(row, 5),
                    .branch = rows.text(row, 6),
                    .machine = rows.text(row, 7),
                    .plan_id = rows.text(row, 8)});
  return runs;
}

std::optional<std::string> PgReader::latest_output(const TestId& id, const std::string& signature) {
  const auto test = find_test(id);
  if (!test) return std::nullopt;
  const PgRows rows = connection_.run(R"sql(
      SELECT output FROM outputs
      WHERE test = $1::bigint
        AND signature = (SELECT id FROM signatures WHERE md5(signature) = md5($2))
      ORDER BY started_us DESC LIMIT 1)sql",
                                      *test, signature);
  if (rows.empty()) return std::nullopt;
  return rows.bytes(0, 0);
}

RunCounts PgReader::count_runs(const TestId& id, const std::string& signature,
                               const Window& window) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return {};
  const PgRows rows = connection_.run(R"sql(
      SELECT count(*) FILTER (WHERE plan = 0 AND outcome = 0),
             count(*) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4)),
             count(*) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4) AND signature =
               (SELECT id FROM signatures WHERE md5(signature) = md5($4))),
             max(started_us) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4)),
             count(*)
      FROM (SELECT started_us, outcome, signature, plan FROM runs
            WHERE test = $1::bigint AND started_us >= $2::bigint AND started_us < $3::bigint
            ORDER BY started_us DESC LIMIT $5::bigint) AS newest)sql",
                                      *test, to_microseconds(window.from),
                                      to_microseconds(window.until), signature, most_counted);
  RunCounts counts{.passes = rows.integer(0, 0),
                   .failures = rows.integer(0, 1),
                   .with_signature = rows.integer(0, 2),
                   .last_failure = std::nullopt,
                   .cut = rows.integer(0, 4) >= most_counted};
  if (!rows.is_null(0, 3)) counts.last_failure = to_time(rows.integer(0, 3));
  return counts;
}

std::optional<LastFailures> PgReader::last_failures(const SessionQuestion& question) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const PgRows sessions = connection_.run(R"sql(
      SELECT id, started_us, ended_us, command_line FROM sessions
      WHERE project = $1::bigint AND starts_with(command_line, $2)
        AND ($3 = '' OR machine = $3) AND ($4 = '' OR build = $4)
      ORDER BY started_us DESC, id DESC LIMIT $5::bigint)sql",
                                          project_, question.command, question.machine,
                                          question.build, LastFailuresReader::most_sessions);
  constexpr const char* tests_sql = R"sql(
    SELECT target, name, max((outcome NOT IN (0, 4))::int)
    FROM session_totals AS sums JOIN tests ON tests.project = $2::bigint
    JOIN runs ON runs.test = tests.id AND runs.session = sums.session
     AND runs.started_us BETWEEN sums.first_us AND sums.last_us
    WHERE sums.session = $1::bigint AND plan = 0 AND ($3 = '' OR target = $3)
    GROUP BY target, name ORDER BY target COLLATE "C", name COLLATE "C")sql";
  LastFailuresReader reader(question.target);
  for (int row = 0; row < sessions.size(); ++row) {
    SessionTests session{
        to_time(sessions.integer(row, 1)), sessions.text(row, 3), !sessions.is_null(row, 2), {}};
    const PgRows tests =
        connection_.run(tests_sql, sessions.integer(row, 0), project_, question.target);
    for (int test = 0; test < tests.size(); ++test)
      session.tests.push_back(
          {{tests.text(test, 0), tests.text(test, 1)}, tests.integer(test, 2) != 0});
    if (!reader.take(session)) break;
  }
  return reader.result();
}

std::optional<int64_t> PgReader::find_test(const TestId& test) {
  const PgRows rows = connection_.run(
      "SELECT id FROM tests WHERE project = $1::bigint AND md5(target) = md5($2)"
      " AND md5(name) = md5($3)",
      project_, test.target, test.name);
  if (rows.empty()) return std::nullopt;
  return rows.integer(0, 0);
}

}  // namespace unflake
