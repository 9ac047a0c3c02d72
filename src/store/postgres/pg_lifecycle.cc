#include "store/postgres/pg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

using Signatures = std::map<int64_t, std::vector<std::string>>;  // by cause

Signatures read_signatures(PgConnection& connection, int64_t project) {
  const PgRows rows = connection.run(
      "SELECT cause, signature FROM cause_signatures JOIN causes ON causes.id = cause"
      " WHERE project = $1::bigint ORDER BY signature COLLATE \"C\"",
      project);
  Signatures signatures;
  for (int row = 0; row < rows.size(); ++row)
    signatures[rows.integer(row, 0)].push_back(rows.text(row, 1));
  return signatures;
}

int64_t insert_cause(PgConnection& connection, int64_t project, const CauseRecord& cause) {
  return connection
      .run(
          "INSERT INTO causes (project, title, state, opened_us, closed_us, reopened, category,"
          " url) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
          project, cause.title, code_of(cause.state), to_microseconds(cause.opened),
          to_microseconds(cause.closed), cause.reopened, cause.category, cause.url)
      .integer(0, 0);
}

void replace_cause(PgConnection& connection, int64_t project, const CauseRecord& cause) {
  const PgRows replaced = connection.run(
      "UPDATE causes SET title = $1, state = $2, opened_us = $3, closed_us = $4, reopened = $5,"
      " category = $6, url = $7 WHERE id = $8 AND project = $9",
      cause.title, code_of(cause.state), to_microseconds(cause.opened),
      to_microseconds(cause.closed), cause.reopened, cause.category, cause.url, cause.id, project);
  if (replaced.changed() == 0)
    throw PgFailure(
        internal_error(fmt::format("the history has no cause {} of this project", cause.id),
                       connection.place()),
        PgFailure::Cure::none);
}

}  // namespace

void note_step(PgConnection& connection, int64_t test, const LifecycleStep& step) {
  connection.run(
      "INSERT INTO lifecycle (test, at_us, kind, signature, commit_id, reason, owner, url)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
      test, to_microseconds(step.at), code_of(step.kind), step.signature, step.commit, step.reason,
      step.owner, step.url);
}

std::vector<LifecycleStep> read_lifecycle(PgConnection& connection, int64_t project,
                                          const Window& window) {
  const PgRows rows = connection.run(
      "SELECT kind, target, name, signature, at_us, commit_id, reason, owner, url"
      " FROM lifecycle JOIN tests ON tests.id = test"
      " WHERE project = $1::bigint AND at_us >= $2::bigint AND at_us < $3::bigint"
      " ORDER BY at_us, target COLLATE \"C\", name COLLATE \"C\", kind, signature COLLATE \"C\"",
      project, to_microseconds(window.from), to_microseconds(window.until));
  std::vector<LifecycleStep> steps;
  for (int row = 0; row < rows.size(); ++row)
    steps.push_back({.kind = lifecycle_from_code(rows.integer(row, 0)),
                     .test = {rows.text(row, 1), rows.text(row, 2)},
                     .signature = rows.text(row, 3),
                     .at = to_time(rows.integer(row, 4)),
                     .commit = rows.text(row, 5),
                     .reason = rows.text(row, 6),
                     .owner = rows.text(row, 7),
                     .url = rows.text(row, 8)});
  return steps;
}

std::vector<CauseRecord> read_causes(PgConnection& connection, int64_t project) {
  PgTransaction snapshot(connection, PgAccess::read);
  Signatures signatures = read_signatures(connection, project);
  const PgRows rows = connection.run(
      "SELECT id, title, state, opened_us, closed_us, reopened, category, url"
      " FROM causes WHERE project = $1::bigint ORDER BY id",
      project);
  std::vector<CauseRecord> causes;
  for (int row = 0; row < rows.size(); ++row)
    causes.push_back({.id = rows.integer(row, 0),
                      .title = rows.text(row, 1),
                      .signatures = std::move(signatures[rows.integer(row, 0)]),
                      .state = cause_state_from_code(rows.integer(row, 2)),
                      .opened = to_time(rows.integer(row, 3)),
                      .closed = rows.is_null(row, 4) ? std::nullopt
                                                     : std::optional(to_time(rows.integer(row, 4))),
                      .reopened = static_cast<int>(rows.integer(row, 5)),
                      .category = rows.text(row, 6),
                      .url = rows.text(row, 7)});
  return causes;
}

int64_t save_cause(PgConnection& connection, int64_t project, const CauseRecord& cause) {
  PgTransaction transaction(connection);
  int64_t id = cause.id;
  if (id == 0)
    id = insert_cause(connection, project, cause);
  else
    replace_cause(connection, project, cause);
  connection.run("DELETE FROM cause_signatures WHERE cause = $1", id);
  connection.run(
      "INSERT INTO cause_signatures (cause, signature) SELECT $1::bigint, unnest($2::text[])"
      " ON CONFLICT DO NOTHING",
      id, cause.signatures);
  transaction.commit();
  return id;
}

void remember_target(PgConnection& connection, int64_t project, const TargetRecord& target) {
  connection.run(
      "INSERT INTO targets (project, name, framework, path, argv) VALUES ($1, $2, $3, $4, $5)"
      " ON CONFLICT (project, md5(name)) DO UPDATE SET"
      " framework = excluded.framework, path = excluded.path, argv = excluded.argv",
      project, target.name, to_string(target.framework), target.path,
      PgBytes{join_argv(target.argv)});
}

std::optional<TargetRecord> find_target(PgConnection& connection, int64_t project,
                                        const std::string& name) {
  const PgRows rows = connection.run(
      "SELECT framework, path, argv FROM targets"
      " WHERE project = $1::bigint AND md5(name) = md5($2)",
      project, name);
  const auto framework = rows.empty() ? std::nullopt : framework_from(rows.text(0, 0));
  if (!framework) return std::nullopt;
  return TargetRecord{name, *framework, rows.text(0, 1), split_argv(rows.bytes(0, 2))};
}

namespace {

// Whoever writes trials shares it, so that nobody forgets a plan between its row and its trial's.
constexpr int64_t plans_lock = 0x756e666c616b6503;  // "unflake", 3

using PlanRows = std::map<std::pair<std::string, std::string>, int64_t>;  // by purpose and plan

// Sorted, so that writers cannot wait for each other in a circle.
PlanRows make_plans(PgConnection& connection, std::span<const RunRecord> trials) {
  PlanRows rows;
  for (const RunRecord& trial : trials) rows[{trial.purpose, trial.plan}] = 0;
  std::vector<std::string> purposes, plans;
  for (const auto& [name, row] : rows) {
    purposes.push_back(name.first);
    plans.push_back(name.second);
  }
  connection.run(
      "INSERT INTO trial_plans (purpose, plan) SELECT * FROM unnest($1::text[], $2::text[])"
      " ON CONFLICT DO NOTHING",
      purposes, plans);
  const PgRows found = connection.run(R"sql(
      SELECT number, known.id
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (purpose, plan, number),
      LATERAL (SELECT id FROM trial_plans AS one WHERE md5(one.purpose) = md5(wanted.purpose)
                 AND md5(one.plan) = md5(wanted.plan) LIMIT 1) AS known)sql",
                                      purposes, plans);
  for (int row = 0; row < found.size(); ++row) {
    const auto number = static_cast<size_t>(found.integer(row, 0) - 1);
    rows[{purposes.at(number), plans.at(number)}] = found.integer(row, 1);
  }
  return rows;
}

}  // namespace

void insert_trials(PgConnection& connection, std::span<const RunRecord> trials,
                   std::vector<RunRow> rows) {
  connection.run("SELECT pg_advisory_xact_lock_shared($1::bigint)", plans_lock);
  const PlanRows plans = make_plans(connection, trials);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].plan = plans.at({trials[i].purpose, trials[i].plan});
  std::ranges::sort(rows, {}, &RunRow::by_test);
  const RunColumns columns(rows);
  connection.run("INSERT INTO trials (" UNFLAKE_RUN_COLUMNS R"sql()
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                           $6::bigint[], $7::bigint[], $8::bigint[])
      ON CONFLICT DO NOTHING)sql",
                 columns.test, columns.started_us, columns.session, columns.attempt,
                 columns.duration_us, columns.outcome, columns.signature, columns.plan);
}

std::vector<RecentRun> recent_runs_in(const PgRows& rows) {
  std::vector<RecentRun> runs;
  for (int row = 0; row < rows.size(); ++row)
    runs.push_back({.started = to_time(rows.integer(row, 0)),
                    .outcome = outcome_from_code(rows.integer(row, 1)),
                    .duration = Duration(rows.integer(row, 2)),
                    .attempt = static_cast<int>(rows.integer(row, 3)),
                    .signature = rows.text(row, 4),
                    .commit = rows.text(row, 5),
                    .branch = rows.text(row, 6),
                    .machine = rows.text(row, 7)});
  return runs;
}

std::vector<RecentRun> recent_trials(PgConnection& connection, int64_t test,
                                     const std::string& purpose, size_t most) {
  const PgRows rows = connection.run(R"sql(
      SELECT trials.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine, purpose, trial_plans.plan
      FROM trials
      LEFT JOIN trial_plans ON trial_plans.id = trials.plan
      LEFT JOIN sessions ON sessions.id = session
      LEFT JOIN signatures ON signatures.id = trials.signature
      WHERE test = $1::bigint AND ($2 = '' OR purpose = $2)
      ORDER BY trials.started_us DESC, session DESC, attempt DESC LIMIT $3::bigint)sql",
                                     test, purpose, most);
  std::vector<RecentRun> trials = recent_runs_in(rows);
  for (int row = 0; row < rows.size(); ++row) {
    trials[static_cast<size_t>(row)].purpose = rows.text(row, 8);
    trials[static_cast<size_t>(row)].plan = rows.text(row, 9);
  }
  return trials;
}

void forget_unused_plans(PgConnection& connection) {
  PgTransaction transaction(connection);
  connection.run("SELECT pg_advisory_xact_lock($1::bigint)", plans_lock);
  connection.run(
      "DELETE FROM trial_plans WHERE NOT EXISTS"
      " (SELECT FROM trials WHERE trials.plan = trial_plans.id)");
  transaction.commit();
}

namespace {

// Whoever writes rows that others may forget when nothing uses them, or forgets them, takes it.
constexpr int64_t functions_lock = 0x756e666c616b6504;  // "unflake", 4

void lock_functions(PgConnection& connection) {
  connection.run("SELECT pg_advisory_xact_lock($1::bigint)", functions_lock);
}

FunctionId as_stored(const FunctionId& function) {
  return {function.kind, shorten(function.name, longest_function_name),
          shorten(function.file, longest_function_name)};
}

using FunctionRows = std::map<FunctionId, int64_t>;

FunctionRows rows_of_functions(PgConnection& connection, int64_t project,
                               std::span<const FunctionsRecord> traces) {
  FunctionRows all;
  for (const FunctionsRecord& trace : traces)
    for (const FunctionId& function : trace.functions) all.try_emplace(as_stored(function), 0);
  std::vector<int64_t> kinds;
  std::vector<std::string> names, files;
  for (const auto& [function, row] : all) {
    kinds.push_back(code_of(function.kind));
    names.push_back(function.name);
    files.push_back(function.file);
  }
  connection.run(R"sql(
      INSERT INTO functions (project, kind, name, file)
      SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[], $4::text[])
      ON CONFLICT DO NOTHING)sql",
                 project, kinds, names, files);
  const PgRows rows = connection.run(R"sql(
      SELECT id FROM unnest($2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY
             AS wanted (kind, name, file, number)
      JOIN functions ON project = $1::bigint AND functions.kind = wanted.kind
        AND md5(functions.name) = md5(wanted.name) AND md5(functions.file) = md5(wanted.file)
      ORDER BY number)sql",
                                     project, kinds, names, files);
  if (rows.size() != static_cast<int>(all.size()))
    connection.fail({"XX001", "a function that was added is not there"});
  int next = 0;
  for (auto& [function, row] : all) row = rows.integer(next++, 0);
  return all;
}

int64_t row_of_set(PgConnection& connection, const std::string& members) {
  const int64_t hash = hash_of_members(members);
  const PgRows known =
      connection.run("SELECT id FROM function_sets WHERE hash = $1::bigint AND members = $2::bytea",
                     hash, PgBytes{members});
  if (!known.empty()) return known.integer(0, 0);
  return connection
      .run(
          "INSERT INTO function_sets (hash, members) VALUES ($1::bigint, $2::bytea)"
          " RETURNING id",
          hash, PgBytes{members})
      .integer(0, 0);
}

}  // namespace

void insert_functions(PgConnection& connection, int64_t project, SessionId session,
                      std::span<const FunctionsRecord> traces, const std::vector<int64_t>& tests) {
  PgTransaction transaction(connection);
  lock_functions(connection);
  connection.execute("SET LOCAL synchronous_commit = off");  // the next run tells the same
  const FunctionRows known = rows_of_functions(connection, project, traces);
  for (size_t i = 0; i < traces.size(); ++i) {
    std::set<int64_t> rows;
    for (const FunctionId& function : traces[i].functions)
      rows.insert(known.at(as_stored(function)));
    const int64_t set = row_of_set(connection, packed_rows(std::vector(rows.begin(), rows.end())));
    connection.run(
        "INSERT INTO function_traces (test, started_us, session, functions)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        tests[i], to_microseconds(traces[i].started), session, set);
  }
  transaction.commit();
}

FunctionTraces latest_functions(PgConnection& connection, int64_t project,
                                const std::string& pattern) {
  PgTransaction snapshot(connection, PgAccess::read);
  TraceReader traces;
  const PgRows newest = connection.run(R"sql(
      SELECT target, name, started_us, commit_id, members
      FROM (SELECT DISTINCT ON (test) test, target, name, function_traces.started_us,
                   coalesce(commit_id, '') AS commit_id, functions
            FROM function_traces
            JOIN tests ON tests.id = test
            LEFT JOIN sessions ON sessions.id = session
            WHERE tests.project = $1::bigint
            ORDER BY test, function_traces.started_us DESC, session DESC) AS newest
      JOIN function_sets ON function_sets.id = functions
      ORDER BY target COLLATE "C", name COLLATE "C")sql",
                                       project);
  for (int row = 0; row < newest.size(); ++row) {
    TestId test{newest.text(row, 0), newest.text(row, 1)};
    if (glob_match(pattern, to_string(test)))
      traces.add(std::move(test), to_time(newest.integer(row, 2)), newest.text(row, 3),
                 newest.bytes(row, 4));
  }
  const PgRows names = connection.run(
      "SELECT id, kind, name, file FROM functions WHERE project = $1::bigint ORDER BY id", project);
  for (int row = 0; row < names.size(); ++row)
    traces.name(names.integer(row, 0), {function_kind_from_code(names.integer(row, 1)),
                                        names.text(row, 2), names.text(row, 3)});
  return traces.take();
}

namespace {

// Of all projects: sets do not say whose they are, their members do.
void forget_unused_functions(PgConnection& connection) {
  connection.run(
      "DELETE FROM function_sets WHERE NOT EXISTS"
      " (SELECT FROM function_traces WHERE functions = function_sets.id)");
  std::set<int64_t> used;
  const PgRows sets = connection.run("SELECT members FROM function_sets");
  for (int row = 0; row < sets.size(); ++row)
    for (const int64_t function : unpacked_rows(sets.bytes(row, 0))) used.insert(function);
  connection.run("DELETE FROM functions WHERE NOT id = ANY ($1::bigint[])",
                 std::vector(used.begin(), used.end()));
}

}  // namespace

int64_t forget_function_traces(PgConnection& connection, int64_t project, int64_t before_us) {
  PgTransaction transaction(connection);
  lock_functions(connection);
  const int64_t removed = connection
                              .run(R"sql(
      DELETE FROM function_traces AS old WHERE started_us < $1::bigint
        AND test IN (SELECT id FROM tests WHERE project = $2::bigint)
        AND EXISTS (SELECT FROM function_traces AS newer
                    WHERE newer.test = old.test
                      AND (newer.started_us, newer.session) > (old.started_us, old.session)))sql",
                                   before_us, project)
                              .changed();
  if (removed > 0) forget_unused_functions(connection);
  transaction.commit();
  return removed;
}

}  // namespace unflake
