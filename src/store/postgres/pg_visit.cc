#include "store/postgres/pg_parts.h"

#include <map>
#include <set>

#include "store/postgres/pg_connection.h"
#include "store/values.h"

namespace unflake {
namespace {

// The server sorts, on its disk when there is much, and gives so many rows at a time.
constexpr const char* sessions_cursor = R"sql(
    DECLARE visited_sessions CURSOR FOR
    SELECT id, uuid, started_us, commit_id, branch, dirty, machine, unflake_version, build,
           command_line, seed
    FROM sessions WHERE project = $1::bigint ORDER BY started_us, id)sql";
constexpr const char* next_sessions = "FETCH 1000 FROM visited_sessions";

constexpr const char* runs_cursor = R"sql(
    DECLARE visited_runs CURSOR FOR
    SELECT all_runs.* FROM (
      SELECT test, started_us, session, attempt, duration_us, outcome, signature, plan FROM runs
      UNION ALL
      SELECT test, started_us, session, attempt, duration_us, outcome, signature, plan FROM trials)
      AS all_runs JOIN sessions ON sessions.id = session JOIN tests ON tests.id = test
    WHERE sessions.project = $1::bigint
    ORDER BY sessions.started_us, sessions.id, plan <> 0, all_runs.started_us, target COLLATE "C",
             name COLLATE "C", attempt)sql";
constexpr const char* next_runs = "FETCH 5000 FROM visited_runs";

SessionRecord read_session(const PgRows& rows, int row) {
  SessionRecord record;
  record.uuid = rows.text(row, 1);
  record.started = to_time(rows.integer(row, 2));
  record.surroundings = {.commit = rows.text(row, 3),
                         .branch = rows.text(row, 4),
                         .dirty = rows.integer(row, 5) != 0,
                         .machine = rows.text(row, 6),
                         .unflake_version = rows.text(row, 7),
                         .build = rows.text(row, 8) == record.uuid ? "" : rows.text(row, 8)};
  record.command_line = rows.text(row, 9);
  if (!rows.is_null(row, 10)) record.seed = static_cast<uint64_t>(rows.integer(row, 10));
  return record;
}

// The runs in the order of their sessions, with what their rows point to.
class RunStream {
 public:
  RunStream(PgConnection& connection, int64_t project) : connection_(connection) {
    connection_.run(runs_cursor, project);
    fetch();
  }

  // Of the session: none when its runs are over.
  std::optional<RunRecord> next_of(int64_t session) {
    if (next_ == runs_.size()) fetch();
    if (next_ == runs_.size() || runs_[next_].session != session) return std::nullopt;
    return record_of(runs_[next_++]);
  }

 private:
  using OutputKey = std::tuple<int64_t, int64_t, int64_t>;  // test, signature, start

  void fetch() {
    const PgRows rows = connection_.run(next_runs);
    runs_.clear();
    next_ = 0;
    for (int row = 0; row < rows.size(); ++row) runs_.push_back(read_run(rows, row));
    if (!runs_.empty()) look_up();
  }

  void look_up() {
    const RunColumns columns(runs_);
    tests_.clear();
    const PgRows tests = connection_.run(
        "SELECT id, target, name FROM tests WHERE id = ANY ($1::bigint[])", columns.test);
    for (int row = 0; row < tests.size(); ++row)
      tests_[tests.integer(row, 0)] = {tests.text(row, 1), tests.text(row, 2)};
    plans_.clear();
    const PgRows plans = connection_.run(
        "SELECT id, purpose, plan FROM trial_plans WHERE id = ANY ($1::bigint[])", columns.plan);
    for (int row = 0; row < plans.size(); ++row)
      plans_[plans.integer(row, 0)] = {plans.text(row, 1), plans.text(row, 2)};
    look_up_failures();
  }

  void look_up_failures() {
    std::vector<RunRow> failing;
    for (const RunRow& run : runs_)
      if (is_failing(outcome_from_code(run.outcome))) failing.push_back(run);
    const RunColumns columns(failing);
    failures_.clear();
    outputs_.clear();
    if (failing.empty()) return;
    const PgRows failures =
        connection_.run("SELECT id, " UNFLAKE_FAILURE_COLUMNS
                        " FROM signatures WHERE id = ANY ($1::bigint[]) AND id <> 0",
                        columns.signature);
    for (int row = 0; row < failures.size(); ++row)
      failures_[failures.integer(row, 0)] = {failures.text(row, 1), read_failure(failures, row, 2)};
    const PgRows outputs = connection_.run(
        "SELECT test, signature, started_us, output"
        " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS g (test, signature, started_us)"
        " JOIN outputs USING (test, signature, started_us)",
        columns.test, columns.signature, columns.started_us);
    for (int row = 0; row < outputs.size(); ++row)
      outputs_[{outputs.integer(row, 0), outputs.integer(row, 1), outputs.integer(row, 2)}] =
          outputs.bytes(row, 3);
  }

  RunRecord record_of(const RunRow& row) {
    RunRecord run;
    run.test = tests_[row.test];
    run.attempt = static_cast<int>(row.attempt);
    run.started = to_time(row.started_us);
    run.outcome = outcome_from_code(row.outcome);
    run.duration = Duration(row.duration_us);
    if (const auto known = plans_.find(row.plan); known != plans_.end())
      std::tie(run.purpose, run.plan) = known->second;
    if (!is_failing(run.outcome)) return run;
    if (const auto known = failures_.find(row.signature); known != failures_.end())
      std::tie(run.signature, run.failure) = known->second;
    if (const auto kept = outputs_.find({row.test, row.signature, row.started_us});
        kept != outputs_.end() && row.plan == 0)
      run.output = kept->second;
    return run;
  }

  PgConnection& connection_;
  std::vector<RunRow> runs_;
  size_t next_ = 0;
  std::map<int64_t, TestId> tests_;
  std::map<int64_t, std::pair<std::string, std::string>> plans_;  // purpose and plan
  std::map<int64_t, std::pair<std::string, Failure>> failures_;
  std::map<OutputKey, std::string> outputs_;
};

Result<void> tell_suppressions(PgConnection& connection, int64_t session,
                               const Store::Visitor& visitor) {
  if (!visitor.suppression) return {};
  const PgRows rows = connection.run(R"sql(
      SELECT target, name, signatures.signature FROM suppressions
      JOIN tests ON tests.id = test JOIN signatures ON signatures.id = suppressions.signature
      WHERE session = $1::bigint ORDER BY target COLLATE "C", name COLLATE "C")sql",
                                     session);
  for (int row = 0; row < rows.size(); ++row) {
    const TestId test{rows.text(row, 0), rows.text(row, 1)};
    if (const auto told = visitor.suppression(test, rows.text(row, 2)); !told) return told;
  }
  return {};
}

}  // namespace

Result<void> visit_history(PgConnection& connection, int64_t project,
                           const Store::Visitor& visitor) {
  PgTransaction snapshot(connection, PgAccess::read);
  connection.run(sessions_cursor, project);
  RunStream runs(connection, project);
  for (;;) {
    const PgRows sessions = connection.run(next_sessions);
    if (sessions.empty()) return {};
    for (int row = 0; row < sessions.size(); ++row) {
      if (const auto told = visitor.session(read_session(sessions, row)); !told) return told;
      while (const auto run = runs.next_of(sessions.integer(row, 0)))
        if (const auto told = visitor.run(*run); !told) return told;
      const auto told = tell_suppressions(connection, sessions.integer(row, 0), visitor);
      if (!told) return told;
    }
  }
}

}  // namespace unflake
