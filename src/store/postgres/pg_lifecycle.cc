#include "store/postgres/pg_lifecycle.h"

#include <fmt/format.h>

#include <map>

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

}  // namespace unflake
