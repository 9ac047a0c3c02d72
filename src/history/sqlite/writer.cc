#include "history/sqlite/writer.h"

#include <algorithm>

#include "history/codes.h"
#include "history/sqlite/failure.h"
#include "history/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t no_row = 0;  // of plans and signatures

bool has_signature(const RunRecord& run) {
  return is_failing(run.outcome) && !run.signature.empty();
}

template <class Rows, class Key>
const int64_t* find_row(const Rows& rows, const Key& key) {
  const auto found = rows.find(key);
  return found != rows.end() ? &found->second : nullptr;
}

// Of a row that is there because it has just been made sure of.
template <class... Values>
int64_t id_of(Database& database, const char* select, const Values&... values) {
  Statement find(database, select);
  Query query(find, values...);
  if (!query.next()) database.fail(SQLITE_CORRUPT);
  return query.integer(0);
}

RunRow row_of(SessionId session, const RunRecord& run, int64_t test, int64_t plan,
              int64_t signature) {
  return {.test = test,
          .started_us = to_microseconds(run.started),
          .session = session,
          .attempt = run.attempt,
          .duration_us = std::max<int64_t>(run.duration.count(), 0),
          .outcome = code_of(run.outcome),
          .signature = signature,
          .plan = plan};
}

}  // namespace

Writer::Writer(Database& database)
    : database_(database),
      insert_run_(database, "INSERT OR IGNORE INTO fresh_runs (" UNFLAKE_RUN_COLUMNS
                            ") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS"
                            " (SELECT 1 FROM runs WHERE (test, started_us, session, attempt)"
                            " = (?1, ?2, ?3, ?4))"),
      outputs_(database) {}

SessionId Writer::begin_session(const SessionRecord& session) {
  const std::string uuid = session.uuid.empty() ? make_session_uuid() : session.uuid;
  const Surroundings& from = session.surroundings;
  Transaction transaction(database_);
  Statement insert(database_,
                   "INSERT INTO sessions (uuid, started_us, commit_id, branch, dirty, machine,"
                   " unflake_version, command_line, seed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT DO NOTHING");
  insert.run(uuid, to_microseconds(session.started), from.commit, from.branch, from.dirty,
             from.machine, from.unflake_version, session.command_line, session.seed);
  const SessionId id = id_of(database_, "SELECT id FROM sessions WHERE uuid = ?", uuid);
  transaction.commit();
  return id;
}

void Writer::record(SessionId session, const RunRecord& run) {
  const Known rows = known(run);
  const bool all_known = rows.test && rows.plan && rows.signature;
  if (all_known && !keeps_output(run, *rows.test, *rows.signature))
    insert_run(row_of(session, run, *rows.test, *rows.plan, *rows.signature));
  else
    record_in_transaction(session, run);
  // SQLite goes on writing to a file that has lost its name; nobody would ever read it.
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
}

void Writer::end_session(SessionId session) {
  Statement end(database_, "UPDATE sessions SET ended_us = ? WHERE id = ?");
  end.run(to_microseconds(std::chrono::system_clock::now()), session);
}

Writer::Known Writer::known(const RunRecord& run) const {
  return {.test = find_row(tests_, run.test),
          .plan = run.plan_id.empty() ? &no_row : find_row(plans_, run.plan_id),
          .signature = has_signature(run) ? find_row(signatures_, run.signature) : &no_row};
}

void Writer::record_in_transaction(SessionId session, const RunRecord& run) {
  try {
    Transaction transaction(database_);
    const RunRow row =
        row_of(session, run, test_row(run.test), plan_row(run.plan_id), signature_row(run));
    insert_run(row);
    if (keeps_output(run, row.test, row.signature)) outputs_.keep(row, run.output);
    transaction.commit();
  } catch (const DatabaseFailure&) {
    // What was rolled back must not be remembered.
    tests_.clear();
    plans_.clear();
    signatures_.clear();
    outputs_.forget_series();
    throw;
  }
}

bool Writer::keeps_output(const RunRecord& run, int64_t test, int64_t signature) const {
  return is_failing(run.outcome) && !run.output.empty() &&
         outputs_.wants(test, signature, to_microseconds(run.started));
}

void Writer::insert_run(const RunRow& run) {
  insert_run_.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
                  run.signature, run.plan);
}

int64_t Writer::test_row(const TestId& test) {
  if (const int64_t* row = find_row(tests_, test)) return *row;
  Statement insert(database_,
                   "INSERT INTO tests (project, target, name) VALUES (0, ?, ?)"
                   " ON CONFLICT DO NOTHING");
  insert.run(test.target, test.name);
  return tests_[test] =
             id_of(database_, "SELECT id FROM tests WHERE project = 0 AND target = ? AND name = ?",
                   test.target, test.name);
}

int64_t Writer::plan_row(const std::string& plan) {
  if (plan.empty()) return no_row;
  if (const int64_t* row = find_row(plans_, plan)) return *row;
  Statement insert(database_, "INSERT INTO plans (plan) VALUES (?) ON CONFLICT DO NOTHING");
  insert.run(plan);
  return plans_[plan] = id_of(database_, "SELECT id FROM plans WHERE plan = ?", plan);
}

int64_t Writer::signature_row(const RunRecord& run) {
  if (!has_signature(run)) return no_row;
  if (const int64_t* row = find_row(signatures_, run.signature)) return *row;
  const Failure failure = run.failure.value_or(Failure{});
  Statement insert(database_,
                   "INSERT INTO signatures (signature, kind, file, line, function, expression,"
                   " message) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  insert.run(run.signature, code_of(failure.kind), shorten(failure.file, 4096), failure.line,
             shorten(failure.function, 4096), shorten(failure.expression, 16384),
             shorten(failure.message, 65536));
  return signatures_[run.signature] =
             id_of(database_, "SELECT id FROM signatures WHERE signature = ?", run.signature);
}

}  // namespace unflake
