#include "store/sqlite/lifecycle_tables.h"

#include <fmt/format.h>

#include "store/sqlite/database.h"
#include "store/values.h"

namespace unflake {
namespace {

std::vector<std::string> signatures_of(Database& database, int64_t cause) {
  Statement find(database,
                 "SELECT signature FROM cause_signatures WHERE cause = ? ORDER BY signature");
  std::vector<std::string> signatures;
  for (Query query(find, cause); query.next();) signatures.push_back(query.text(0));
  return signatures;
}

int64_t insert_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Statement insert(database,
                   "INSERT INTO causes (project, title, state, opened_us, closed_us, reopened,"
                   " category, url) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
  Query query(insert, project, cause.title, code_of(cause.state), to_microseconds(cause.opened),
              to_microseconds(cause.closed), cause.reopened, cause.category, cause.url);
  const int64_t id = query.next() ? query.integer(0) : 0;
  query.next();
  return id;
}

void replace_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Statement update(database,
                   "UPDATE causes SET title = ?, state = ?, opened_us = ?, closed_us = ?,"
                   " reopened = ?, category = ?, url = ? WHERE id = ? AND project = ?");
  update.run(cause.title, code_of(cause.state), to_microseconds(cause.opened),
             to_microseconds(cause.closed), cause.reopened, cause.category, cause.url, cause.id,
             project);
  if (database.changes() == 0)
    throw DatabaseFailure(internal_error(
        fmt::format("the history has no cause {} of this project", cause.id), database.path()));
}

}  // namespace

void note_event(Database& database, int64_t test, const LifecycleEvent& event) {
  Statement insert(database,
                   "INSERT INTO lifecycle (test, at_us, kind, signature, commit_id, reason, owner,"
                   " url) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  insert.run(test, to_microseconds(event.at), code_of(event.kind), event.signature, event.commit,
             event.reason, event.owner, event.url);
}

std::vector<LifecycleEvent> read_lifecycle(Database& database, int64_t project,
                                           const Window& window) {
  Statement events(database, R"sql(
      SELECT kind, target, name, signature, at_us, commit_id, reason, owner, url
      FROM lifecycle JOIN tests ON tests.id = test
      WHERE project = ? AND at_us >= ? AND at_us < ?
      ORDER BY at_us, target, name, kind, signature)sql");
  std::vector<LifecycleEvent> all;
  for (Query query(events, project, to_microseconds(window.from), to_microseconds(window.until));
       query.next();)
    all.push_back({.kind = lifecycle_from_code(query.integer(0)),
                   .test = {query.text(1), query.text(2)},
                   .signature = query.text(3),
                   .at = to_time(query.integer(4)),
                   .commit = query.text(5),
                   .reason = query.text(6),
                   .owner = query.text(7),
                   .url = query.text(8)});
  return all;
}

std::vector<CauseRecord> read_causes(Database& database, int64_t project) {
  Transaction snapshot(database, Access::read);
  Statement find(database,
                 "SELECT id, title, state, opened_us, closed_us, reopened, category, url"
                 " FROM causes WHERE project = ? ORDER BY id");
  std::vector<CauseRecord> causes;
  for (Query query(find, project); query.next();) {
    causes.push_back(
        {.id = query.integer(0),
         .title = query.text(1),
         .signatures = signatures_of(database, query.integer(0)),
         .state = cause_state_from_code(query.integer(2)),
         .opened = to_time(query.integer(3)),
         .closed = query.is_null(4) ? std::nullopt : std::optional(to_time(query.integer(4))),
         .reopened = static_cast<int>(query.integer(5)),
         .category = query.text(6),
         .url = query.text(7)});
  }
  return causes;
}

int64_t save_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Transaction transaction(database);
  int64_t id = cause.id;
  if (id == 0)
    id = insert_cause(database, project, cause);
  else
    replace_cause(database, project, cause);
  Statement remove(database, "DELETE FROM cause_signatures WHERE cause = ?");
  remove.run(id);
  Statement add(database, "INSERT INTO cause_signatures VALUES (?, ?) ON CONFLICT DO NOTHING");
  for (const std::string& signature : cause.signatures) add.run(id, signature);
  transaction.commit();
  return id;
}

void remember_target(Database& database, int64_t project, const TargetRecord& target) {
  Statement remember(database, "REPLACE INTO targets VALUES (?, ?, ?, ?, ?)");
  remember.run(project, target.name, to_string(target.framework), target.path,
               Blob{join_argv(target.argv)});
}

std::optional<TargetRecord> find_target(Database& database, int64_t project,
                                        const std::string& name) {
  Statement find(database,
                 "SELECT framework, path, argv FROM targets WHERE project = ? AND name = ?");
  Query query(find, project, name);
  const auto framework = query.next() ? framework_from(query.text(0)) : std::nullopt;
  if (!framework) return std::nullopt;
  return TargetRecord{name, *framework, query.text(1), split_argv(query.text(2))};
}

}  // namespace unflake
