#include "store/sqlite/sqlite_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "store/sqlite/database.h"
#include "store/store.h"
#include "store/summary.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t slots = 20;

// A limit for the test whose every failure has a signature of its own.
constexpr int64_t outputs_per_test = 200;

constexpr int64_t pause_us = 1'000'000;

// What is known of more series than this is forgotten, which costs some outputs more.
constexpr size_t most_series = 100'000;

}  // namespace

Outputs::Outputs(Database& database)
    : database_(database),
      replace_(database,
               "REPLACE INTO outputs (test, signature, slot, started_us, output)"
               " VALUES (?, ?, ?, ?, ?)") {}

bool Outputs::wants(int64_t test, int64_t signature, int64_t started_us) const {
  const auto found = series_.find({test, signature});
  if (found == series_.end() || found->second.kept < slots) return true;
  return started_us - found->second.last_us >= pause_us;
}

void Outputs::keep(const RunRow& run, std::string_view output) {
  if (series_.size() > most_series) series_.clear();
  const auto [at, is_new] = series_.try_emplace({run.test, run.signature});
  Series& series = at->second;
  if (is_new) series.next_slot = first_slot(run);
  replace_.run(run.test, run.signature, series.next_slot, run.started_us,
               Blob{cut_middle(std::string(output), longest_kept_output)});
  series = {.next_slot = (series.next_slot + 1) % slots,
            .kept = series.kept + 1,
            .last_us = run.started_us};
}

int64_t Outputs::first_slot(const RunRow& run) {
  Statement newest(database_,
                   "SELECT slot FROM outputs WHERE test = ? AND signature = ?"
                   " ORDER BY started_us DESC LIMIT 1");
  Query query(newest, run.test, run.signature);
  if (query.next()) return (query.integer(0) % slots + 1) % slots;
  make_room(run.test);
  return 0;
}

void Outputs::make_room(int64_t test) {
  Statement remove(database_,
                   "DELETE FROM outputs WHERE (test, signature, slot) IN"
                   " (SELECT test, signature, slot FROM outputs WHERE test = ?"
                   "  ORDER BY started_us DESC LIMIT -1 OFFSET ?)");
  remove.run(test, outputs_per_test - slots);
}

namespace {

using Clock = std::chrono::steady_clock;

// Others wait for a transaction, so it ends when it has taken so long.
constexpr std::chrono::milliseconds longest_transaction{50};

// So many rows of one test go at once.
constexpr int64_t rows_at_once = 10'000;

struct Horizon {
  int64_t passing_us = INT64_MIN, failing_us = INT64_MIN;
};

// Never goes back: what has been forgotten stays so, whatever is kept from now on.
Horizon move_horizon(Database& database, int64_t project, const Horizon& wanted) {
  Statement move(database,
                 "INSERT INTO horizons VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
                 " passing_us = max(passing_us, excluded.passing_us),"
                 " failing_us = max(failing_us, excluded.failing_us)");
  move.run(project, wanted.passing_us, wanted.failing_us);
  return wanted;
}

std::vector<int64_t> tests_of(Database& database, int64_t project) {
  Statement find(database, "SELECT id FROM tests WHERE project = ?");
  std::vector<int64_t> tests;
  for (Query query(find, project); query.next();) tests.push_back(query.integer(0));
  return tests;
}

// Deletes of each test as long as there is something to delete. Says how many rows went.
template <class... Values>
int64_t delete_of_tests(Database& database, const std::vector<int64_t>& tests, const char* sql,
                        const Values&... values) {
  Statement remove(database, sql);
  int64_t removed = 0;
  for (size_t next = 0; next < tests.size();) {
    Transaction transaction(database);
    const auto begun = Clock::now();
    while (next < tests.size() && Clock::now() - begun < longest_transaction) {
      remove.run(tests[next], values..., rows_at_once);
      removed += database.changes();
      if (database.changes() < rows_at_once) ++next;
    }
    transaction.commit();
  }
  return removed;
}

// Those that are too old, and those after the newest ones.
int64_t forget_trials(Database& database, const std::vector<int64_t>& tests,
                      const TrialBounds& bounds) {
  const int64_t removed = delete_of_tests(database, tests, R"sql(
      DELETE FROM trials WHERE (test, started_us, session, attempt) IN (
        SELECT test, started_us, session, attempt FROM trials
        WHERE test = ?1 AND started_us < max(?2, coalesce(
          (SELECT started_us FROM trials WHERE test = ?1
           ORDER BY started_us DESC LIMIT 1 OFFSET ?3), ?2))
        LIMIT ?4))sql",
                                          bounds.before_us, bounds.newer);
  if (removed > 0) forget_unused_plans(database);
  return removed;
}

}  // namespace

RetentionCount forget_runs(Database& database, int64_t project, const Retention& retention,
                           TimePoint now) {
  const std::vector<int64_t> tests = tests_of(database, project);
  RetentionCount count;
  if (retention.trials || retention.most_trials)
    count.trials = forget_trials(database, tests, trial_bounds(retention, now));
  if (retention.trials)
    count.traces = forget_function_traces(database, project, cut_off(retention.trials, now));
  if (retention.passing_runs || retention.failing_runs) {
    const Horizon horizon =
        move_horizon(database, project,
                     {cut_off(retention.passing_runs, now), cut_off(retention.failing_runs, now)});
    count.runs = delete_of_tests(database, tests, R"sql(
        DELETE FROM runs WHERE (test, started_us, session, attempt) IN (
          SELECT test, started_us, session, attempt FROM runs
          WHERE test = ?1 AND started_us < max(?2, ?3)
            AND started_us < iif(outcome IN (0, 4), ?2, ?3)
          LIMIT ?4))sql",
                                 horizon.passing_us, horizon.failing_us);
  }
  if (retention.outputs)
    count.outputs = delete_of_tests(database, tests, R"sql(
        DELETE FROM outputs WHERE (test, signature, slot) IN (
          SELECT test, signature, slot FROM outputs
          WHERE test = ?1 AND started_us < ?2 LIMIT ?3))sql",
                                    cut_off(retention.outputs, now));
  return count;
}

std::optional<TimePoint> forgotten_before(Database& database, int64_t project) {
  Statement find(database, "SELECT max(passing_us, failing_us) FROM horizons WHERE project = ?");
  Query query(find, project);
  if (!query.next()) return std::nullopt;
  return to_time(query.integer(0));
}

namespace {

constexpr int64_t no_row = 0;  // of signatures

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

RunRow make_row(SessionId session, const RunRecord& run, int64_t test, int64_t signature) {
  return {.test = test,
          .started_us = to_microseconds(run.started),
          .session = session,
          .attempt = run.attempt,
          .duration_us = recorded_us(run.duration),
          .outcome = code_of(run.outcome),
          .signature = signature};
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
      placement_(database),
      trials_(database),
      executed_(database, project) {}

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
  if (!is_plain(run)) return record_all(session, {&run, 1});
  const Known rows = known(run);
  bool done = false;
  if (rows.test && rows.signature) {
    const RunRow row = make_row(session, run, *rows.test, *rows.signature);
    done = !keeps_output(run, row);
    if (done) insert_run(row);
  }
  if (!done) in_transaction([&] { record_unknown(session, run); });
  // SQLite goes on writing to a file that has lost its name; nobody would ever read it.
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
  if (++fresh_ >= most_fresh) settle_fresh();
}

void Writer::record_all(SessionId session, std::span<const RunRecord> runs) {
  const SplitRuns split(runs);
  in_transaction([&] {
    require_session(session);
    insert_trials(session, split.trials());
    stage_all(session, split.plain());
  });
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
  place_when_due(static_cast<int64_t>(split.plain().size()), 0);
}

void Writer::record_functions(SessionId session, std::span<const FunctionsRecord> traces) {
  in_transaction([&] {
    require_session(session);
    for (const FunctionsRecord& trace : traces)
      executed_.insert(session, test_row(trace.test), trace);
  });
  if (database_.has_moved()) database_.fail(SQLITE_READONLY_DBMOVED);
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

void Writer::note(const LifecycleStep& step) {
  in_transaction([&] { note_step(database_, test_row(step.test), step); });
}

void Writer::settle_everything() {
  for (const int64_t session : staging_.stage_fresh()) flakiness_.settle(session);
  placement_.place_all();
  fresh_ = 0;
}

Writer::Known Writer::known(const RunRecord& run) const {
  return {.test = tests_.find(run.test),
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

void Writer::insert_trials(SessionId session, std::span<const RunRecord> trials) {
  for (const RunRecord& trial : trials) {
    RunRow row = row_of(session, trial);
    row.plan = trials_.plan_row(trial.purpose, trial.plan);
    trials_.insert(row);
  }
}

void Writer::stage_all(SessionId session, std::span<const RunRecord> runs) {
  if (runs.empty()) return;
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
  const int64_t test = test_row(run.test);
  return make_row(session, run, test, signature_row(run));
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
