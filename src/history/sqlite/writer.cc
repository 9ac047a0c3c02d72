#include "history/sqlite/writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "history/codes.h"
#include "history/sqlite/failure.h"
#include "history/sqlite/lifecycle_tables.h"
#include "history/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t no_row = 0;  // of plans and signatures

// So many runs may pile up while a session runs. The more there are, the more of them share a page;
// the fewer there are, the less a query has to add up.
constexpr int64_t most_fresh = 65'536;

// Of a row that is there because it has just been made sure of.
template <class... Values>
int64_t id_of(Database& database, const char* select, const Values&... values) {
  Statement find(database, select);
  Query query(find, values...);
  if (!query.next()) database.fail(SQLITE_CORRUPT);
  return query.integer(0);
}

RunRow make_row(SessionId session, const RunRecord& run, int64_t test, int64_t plan,
                int64_t signature) {
  return {.test = test,
          .started_us = to_microseconds(run.started),
          .session = session,
          .attempt = run.attempt,
          .duration_us = recorded_us(run.duration),
          .outcome = code_of(run.outcome),
          .signature = signature,
          .plan = plan};
}

// A suppression may name a signature before a run shows what it stands for.
int64_t insert_signature(Database& database, const std::string& signature, const Failure& failure) {
  Statement insert(database, R"sql(
      INSERT INTO signatures (signature, kind, file, line, function, expression, message)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET
        kind = excluded.kind, file = excluded.file, line = excluded.line,
        function = excluded.function, expression = excluded.expression, message = excluded.message
      WHERE (kind, file, line, function, expression, message) = (0, '', 0, '', '', '')
        AND id <> 0)sql");
  insert.run(signature, code_of(failure.kind), shorten(failure.file, 4096), failure.line,
             shorten(failure.function, 4096), shorten(failure.expression, 16384),
             shorten(failure.message, 65536));
  return id_of(database, "SELECT id FROM signatures WHERE signature = ?", signature);
}

}  // namespace

Writer::Writer(Database& database, int64_t project)
    : database_(database),
      project_(project),
      insert_run_(database, "INSERT OR IGNORE INTO fresh_runs (" UNFLAKE_RUN_COLUMNS R"sql()
          SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
          WHERE NOT EXISTS (SELECT 1 FROM staged_runs
                            WHERE (session, test, started_us, attempt) = (?3, ?1, ?2, ?4))
            AND NOT EXISTS (SELECT 1 FROM runs
                            WHERE (test, started_us, session, attempt) = (?1, ?2, ?3, ?4))
            AND NOT EXISTS (SELECT 1 FROM horizons
                            WHERE project = ?9
                              AND ?2 < iif(?6 IN (0, 4), passing_us, failing_us)))sql"),
      find_session_(database, "SELECT 1 FROM sessions WHERE id = ? AND project = ?"),
      outputs_(database),
      staging_(database, project),
      flakiness_(database),
      placement_(database) {}

SessionId Writer::begin_session(const SessionRecord& session) {
  const std::string uuid = session.uuid.empty() ? make_session_uuid() : session.uuid;
  const Surroundings& from = session.surroundings;
  Transaction transaction(database_);
  Statement insert(database_,
                   "INSERT INTO sessions (uuid, started_us, commit_id, branch, dirty, machine,"
                   " unflake_version, command_line, seed, project, build)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  insert.run(uuid, to_microseconds(session.started), from.commit, from.branch, from.dirty,
             from.machine, from.unflake_version, session.command_line, session.seed, project_,
             from.build.empty() ? uuid : from.build);
  const SessionId id = id_of(database_, "SELECT id FROM sessions WHERE uuid = ?", uuid);
  require_session(id);
  transaction.commit();
  return id;
}

void Writer::record(SessionId session, const RunRecord& run) {
  const Known rows = known(run);
  bool done = false;
  if (rows.test && rows.plan && rows.signature) {
    const RunRow row = make_row(session, run, *rows.test, *rows.plan, *rows.signature);
    done = !keeps_output(run, row);
    if (done) insert_run(row);
  }
  if (!done) in_transaction([&] { record_unknown(session, run); });
  // SQLite goes on writing to a file that has lost its name; nobody would ever read it.
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
  if (++fresh_ >= most_fresh) settle_fresh();
}

void Writer::record_all(SessionId session, std::span<const RunRecord> runs) {
  in_transaction([&] { stage_all(session, runs); });
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
  place_when_due(static_cast<int64_t>(runs.size()), 0);
}

void Writer::suppress(SessionId session, const TestId& test, const std::string& signature) {
  in_transaction([&] {
    require_session(session);
    Statement insert(database_, "INSERT INTO suppressions VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    insert.run(session, test_row(test),
               signature.empty() ? no_row : insert_signature(database_, signature, {}));
  });
}

void Writer::end_session(SessionId session) {
  Statement end(database_, "UPDATE sessions SET ended_us = ? WHERE id = ?");
  end.run(to_microseconds(std::chrono::system_clock::now()), session);
  stop_session(session);
}

void Writer::stop_session(SessionId session) {
  auto sessions = staging_.stage_fresh();
  sessions.insert(session);
  for (const int64_t touched : sessions) flakiness_.settle(touched);
  place_when_due(fresh_, static_cast<int64_t>(sessions.size()));
  fresh_ = 0;
}

void Writer::note(const LifecycleEvent& event) {
  in_transaction([&] { note_event(database_, test_row(event.test), event); });
}

void Writer::settle_everything() {
  for (const int64_t session : staging_.stage_fresh()) flakiness_.settle(session);
  placement_.place_all();
  fresh_ = 0;
}

Writer::Known Writer::known(const RunRecord& run) const {
  return {.test = tests_.find(run.test),
          .plan = run.plan_id.empty() ? &no_row : plans_.find(run.plan_id),
          .signature = has_signature(run) ? signatures_.find(run.signature) : &no_row};
}

void Writer::in_transaction(const std::function<void()>& work) {
  try {
    Transaction transaction(database_);
    work();
    transaction.commit();
  } catch (...) {
    // What was rolled back must not be remembered.
    tests_.clear();
    plans_.clear();
    signatures_.clear();
    outputs_.forget_series();
    throw;
  }
}

void Writer::record_unknown(SessionId session, const RunRecord& run) {
  const RunRow row = row_of(session, run);
  insert_run(row);
  if (keeps_output(run, row)) outputs_.keep(row, run.output);
}

void Writer::stage_all(SessionId session, std::span<const RunRecord> runs) {
  require_session(session);
  std::vector<RunRow> rows;
  rows.reserve(runs.size());
  for (const RunRecord& run : runs) rows.push_back(row_of(session, run));
  const std::vector<RunRow> added = staging_.stage(rows);
  if (!added.empty()) keep_outputs(runs, rows, added);
}

void Writer::keep_outputs(std::span<const RunRecord> runs, std::span<const RunRow> rows,
                          const std::vector<RunRow>& added) {
  for (size_t i = 0; i < runs.size(); ++i)
    if (keeps_output(runs[i], rows[i]) &&
        std::ranges::binary_search(added, rows[i].by_session(), {}, &RunRow::by_session))
      outputs_.keep(rows[i], runs[i].output);
}

bool Writer::keeps_output(const RunRecord& run, const RunRow& row) const {
  return is_failing(run.outcome) && !run.output.empty() &&
         outputs_.wants(row.test, row.signature, row.started_us);
}

void Writer::insert_run(const RunRow& run) {
  insert_run_.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
                  run.signature, run.plan, project_);
}

RunRow Writer::row_of(SessionId session, const RunRecord& run) {
  const int64_t test = test_row(run.test), plan = plan_row(run.plan_id);
  return make_row(session, run, test, plan, signature_row(run));
}

void Writer::require_session(SessionId session) {
  if (Query(find_session_, session, project_).next()) return;
  throw DatabaseFailure(internal_error(
      fmt::format("the history has no session {} of this project", session), database_.path()));
}

int64_t Writer::test_row(const TestId& test) {
  if (const int64_t* row = tests_.find(test)) return *row;
  Statement insert(database_,
                   "INSERT INTO tests (project, target, name) VALUES (?, ?, ?)"
                   " ON CONFLICT DO NOTHING");
  insert.run(project_, test.target, test.name);
  const char* find = "SELECT id FROM tests WHERE project = ? AND target = ? AND name = ?";
  return tests_.add(test, id_of(database_, find, project_, test.target, test.name));
}

int64_t Writer::plan_row(const std::string& plan) {
  if (plan.empty()) return no_row;
  if (const int64_t* row = plans_.find(plan)) return *row;
  Statement insert(database_, "INSERT INTO plans (plan) VALUES (?) ON CONFLICT DO NOTHING");
  insert.run(plan);
  return plans_.add(plan, id_of(database_, "SELECT id FROM plans WHERE plan = ?", plan));
}

int64_t Writer::signature_row(const RunRecord& run) {
  if (!has_signature(run)) return no_row;
  if (const int64_t* row = signatures_.find(run.signature)) return *row;
  const Failure failure = run.failure.value_or(Failure{});
  return signatures_.add(run.signature, insert_signature(database_, run.signature, failure));
}

// The runs are safe already, so what fails here is left to a later time.
void Writer::settle_fresh() {
  try {
    fresh_ = 0;
    const auto sessions = staging_.stage_fresh();
    placement_.place_when_due(most_fresh, static_cast<int64_t>(sessions.size()));
  } catch (const DatabaseFailure&) {
  }
}

void Writer::place_when_due(int64_t runs, int64_t sessions) {
  try {
    placement_.place_when_due(runs, sessions);
  } catch (const DatabaseFailure&) {
  }
}

}  // namespace unflake
