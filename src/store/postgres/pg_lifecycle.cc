#include "store/postgres/pg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "store/values.h"

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

}  // namespace unflake
