#include "store/sqlite/sqlite_parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "store/values.h"
#include "util/text.h"

namespace unflake {

void for_each_unplaced(Database& database, const std::function<void(const RunRow&)>& take) {
  Statement all(database, "SELECT " UNFLAKE_RUN_COLUMNS
                          " FROM staged_runs UNION ALL"
                          " SELECT " UNFLAKE_RUN_COLUMNS " FROM fresh_runs");
  for (Query query(all); query.next();) take(read_run(query));
}

void for_each_unplaced(Database& database, int64_t test,
                       const std::function<void(const RunRow&)>& take) {
  Statement of_test(database, R"sql(
      WITH RECURSIVE staged (id) AS (
        SELECT min(session) FROM staged_runs
        UNION ALL
        SELECT (SELECT min(session) FROM staged_runs WHERE session > id)
        FROM staged WHERE id IS NOT NULL)
      SELECT )sql" UNFLAKE_RUN_COLUMNS R"sql(
      FROM staged CROSS JOIN staged_runs ON session = id AND test = ?1
      UNION ALL
      SELECT )sql" UNFLAKE_RUN_COLUMNS " FROM fresh_runs WHERE test = ?1");
  for (Query query(of_test, test); query.next();) take(read_run(query));
}

namespace {

// One transaction takes so many fresh runs, which takes some ten milliseconds; others wait for it.
constexpr int64_t fresh_batch = 8192;

}  // namespace

Staging::Staging(Database& database, int64_t project)
    : database_(database),
      project_(project),
      stored_(database),
      sums_(database, stored_),
      insert_(database, "INSERT INTO staged_runs (" UNFLAKE_RUN_COLUMNS
                        ") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"),
      is_fresh_(database,
                "SELECT 1 FROM fresh_runs WHERE (test, started_us, session, attempt)"
                " = (?, ?, ?, ?)"),
      any_fresh_(database, "SELECT EXISTS (SELECT 1 FROM fresh_runs)"),
      horizon_(database, "SELECT passing_us, failing_us FROM horizons WHERE project = ?"),
      some_fresh_(database, "SELECT " UNFLAKE_RUN_COLUMNS
                            " FROM fresh_runs"
                            " ORDER BY test, started_us, session, attempt LIMIT ?"),
      remove_fresh_(database,
                    "DELETE FROM fresh_runs"
                    " WHERE (test, started_us, session, attempt) <= (?, ?, ?, ?)") {}

std::vector<RunRow> Staging::stage(std::vector<RunRow> runs) {
  std::ranges::sort(runs, {}, &RunRow::by_session);
  Query fresh(any_fresh_);
  if (fresh.next() && fresh.integer(0) != 0)
    std::erase_if(runs, [&](const RunRow& run) {
      return Query(is_fresh_, run.test, run.started_us, run.session, run.attempt).next();
    });
  Query horizon(horizon_, project_);
  if (horizon.next())
    std::erase_if(runs, [&](const RunRow& run) {
      return run.started_us < horizon.integer(is_failing(outcome_from_code(run.outcome)) ? 1 : 0);
    });
  return insert_new(std::move(runs));
}

std::set<int64_t> Staging::stage_fresh() {
  std::set<int64_t> sessions;
  while (stage_some_fresh(sessions) == fresh_batch) {
  }
  return sessions;
}

int64_t Staging::stage_some_fresh(std::set<int64_t>& sessions) {
  if (Query any(any_fresh_); !any.next() || any.integer(0) == 0) return 0;
  Transaction transaction(database_);
  std::vector<RunRow> runs;
  for (Query query(some_fresh_, fresh_batch); query.next();) runs.push_back(read_run(query));
  if (runs.empty()) return 0;
  const RunRow last = runs.back();
  std::ranges::sort(runs, {}, &RunRow::by_session);
  for (auto begin = runs.begin(); begin != runs.end();) {
    const auto end = std::find_if(begin, runs.end(),
                                  [&](const RunRow& run) { return run.session != begin->session; });
    sessions.insert(begin->session);
    insert_new({begin, end});
    begin = end;
  }
  remove_fresh_.run(last.test, last.started_us, last.session, last.attempt);
  transaction.commit();
  return static_cast<int64_t>(runs.size());
}

std::vector<RunRow> Staging::insert_new(std::vector<RunRow> runs) {
  if (runs.empty()) return runs;
  const bool look_into_runs = stored_.has_placed(runs.front().session);
  std::erase_if(runs, [&](const RunRow& run) {
    if (look_into_runs && stored_.holds(run)) return true;
    insert_.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
                run.signature, run.plan);
    return database_.changes() == 0;
  });
  sums_.add(runs);
  return runs;
}

namespace {

// With thirty thousand tests, nearly twenty runs of each share a page that is written. To add up as
// many for an answer takes a tenth of a second.
constexpr int64_t many_runs = 524'288;

// A question about one test looks into each of these.
constexpr int64_t many_sessions = 2'000;

// Other processes stage runs, too, so what waits is counted; that costs milliseconds.
constexpr int64_t runs_between_looks = many_runs / 16;
constexpr int64_t sessions_between_looks = many_sessions / 8;

// What one transaction moves, which takes a second or two; others wait for it.
constexpr int64_t most_at_once = many_runs;

}  // namespace

Placement::Placement(Database& database)
    : database_(database),
      runs_since_look_(runs_between_looks),
      sessions_since_look_(sessions_between_looks) {}

void Placement::place_when_due(int64_t runs, int64_t sessions) {
  runs_since_look_ += runs;
  sessions_since_look_ += sessions;
  if (runs_since_look_ < runs_between_looks && sessions_since_look_ < sessions_between_looks)
    return;
  runs_since_look_ = sessions_since_look_ = 0;
  if (is_due()) place(most_at_once);
}

void Placement::place_all() {
  while (place(most_at_once) == most_at_once) {
  }
}

bool Placement::is_due() {
  if (database_.integer("SELECT count(*) FROM staged_runs") >= many_runs) return true;
  return database_.integer(R"sql(
      WITH RECURSIVE staged (id) AS (
        SELECT min(session) FROM staged_runs
        UNION ALL
        SELECT (SELECT min(session) FROM staged_runs WHERE session > id)
        FROM staged WHERE id IS NOT NULL)
      SELECT count(id) FROM staged)sql") >= many_sessions;
}

int64_t Placement::place(int64_t most) {
  Statement staged(database_, "SELECT " UNFLAKE_RUN_COLUMNS
                              " FROM staged_runs"
                              " ORDER BY session, test, started_us, attempt LIMIT ?");
  Statement remove(database_,
                   "DELETE FROM staged_runs"
                   " WHERE (session, test, started_us, attempt) <= (?, ?, ?, ?)");
  Transaction transaction(database_);
  std::vector<RunRow> runs;
  for (Query query(staged, most); query.next();) runs.push_back(read_run(query));
  if (runs.empty()) return 0;
  note_sessions(runs);
  const RunRow last = runs.back();
  if (static_cast<int64_t>(runs.size()) < most)
    database_.execute("DELETE FROM staged_runs");  // gives its pages back without looking at rows
  else
    remove.run(last.session, last.test, last.started_us, last.attempt);
  std::ranges::sort(runs, {}, &RunRow::by_test);
  add_to_runs(runs);
  transaction.commit();
  return static_cast<int64_t>(runs.size());
}

void Placement::add_to_runs(const std::vector<RunRow>& runs) {
  Statement keep(database_, "INSERT INTO runs (" UNFLAKE_RUN_COLUMNS
                            ") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  TotalsTables tables(database_);
  Totals totals;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunRow& run = runs[i];
    keep.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
             run.signature, run.plan);
    if (database_.changes() > 0) totals.add(run);
    if (i + 1 < runs.size() && runs[i + 1].test == run.test) continue;
    tables.add(totals);
    totals = {};
  }
}

void Placement::note_sessions(const std::vector<RunRow>& runs) {
  Statement note(database_,
                 "INSERT INTO placed_sessions VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                 " first_us = min(first_us, excluded.first_us),"
                 " last_us = max(last_us, excluded.last_us), runs = runs + excluded.runs");
  for (auto begin = runs.begin(); begin != runs.end();) {
    const auto end = std::find_if(begin, runs.end(),
                                  [&](const RunRow& run) { return run.session != begin->session; });
    const auto [first, last] = std::minmax_element(
        begin, end, [](const RunRow& a, const RunRow& b) { return a.started_us < b.started_us; });
    note.run(begin->session, first->started_us, last->started_us, end - begin);
    begin = end;
  }
}

TrialsTable::TrialsTable(Database& database)
    : database_(database),
      insert_plan_(database,
                   "INSERT INTO trial_plans (purpose, plan) VALUES (?, ?) ON CONFLICT DO NOTHING"),
      find_plan_(database, "SELECT id FROM trial_plans WHERE purpose = ? AND plan = ?"),
      insert_(database, "INSERT INTO trials (" UNFLAKE_RUN_COLUMNS
                        ") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING") {}

int64_t TrialsTable::plan_row(const std::string& purpose, const std::string& plan) {
  if (Query known(find_plan_, purpose, plan); known.next()) return known.integer(0);
  insert_plan_.run(purpose, plan);
  Query made(find_plan_, purpose, plan);
  if (!made.next()) database_.fail(SQLITE_CORRUPT);
  return made.integer(0);
}

void TrialsTable::insert(const RunRow& trial) {
  insert_.run(trial.test, trial.started_us, trial.session, trial.attempt, trial.duration_us,
              trial.outcome, trial.signature, trial.plan);
}

std::vector<RecentRun> recent_trials(Database& database, int64_t test, const std::string& purpose,
                                     size_t most) {
  Statement newest(database, R"sql(
      SELECT trials.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine, purpose, trial_plans.plan
      FROM trials
      LEFT JOIN trial_plans ON trial_plans.id = trials.plan
      LEFT JOIN sessions ON sessions.id = trials.session
      LEFT JOIN signatures ON signatures.id = trials.signature
      WHERE test = ?1 AND (?2 = '' OR purpose = ?2)
      ORDER BY trials.started_us DESC, trials.session DESC, attempt DESC LIMIT ?3)sql");
  std::vector<RecentRun> trials;
  for (Query query(newest, test, purpose, most); query.next();)
    trials.push_back({.started = to_time(query.integer(0)),
                      .outcome = outcome_from_code(query.integer(1)),
                      .duration = Duration(query.integer(2)),
                      .attempt = static_cast<int>(query.integer(3)),
                      .signature = query.text(4),
                      .commit = query.text(5),
                      .branch = query.text(6),
                      .machine = query.text(7),
                      .purpose = query.text(8),
                      .plan = query.text(9)});
  return trials;
}

TrialStream::TrialStream(Database& database, int64_t project)
    : all_(database, R"sql(
          SELECT trials.test, trials.started_us, session, attempt, duration_us, outcome, signature,
                 plan
          FROM trials JOIN sessions ON sessions.id = session JOIN tests ON tests.id = test
          WHERE sessions.project = ?
          ORDER BY sessions.started_us, sessions.id, trials.started_us, target, name, attempt)sql"),
      plan_(database, "SELECT purpose, plan FROM trial_plans WHERE id = ?"),
      query_(all_, project) {
  if (query_.next()) next_ = read_run(query_);
}

std::optional<RunRow> TrialStream::next_of(int64_t session) {
  if (!next_ || next_->session != session) return std::nullopt;
  return std::exchange(next_, query_.next() ? std::optional(read_run(query_)) : std::nullopt);
}

void TrialStream::describe(const RunRow& row, RunRecord& trial) {
  Query query(plan_, row.plan);
  if (!query.next()) return;
  trial.purpose = query.text(0);
  trial.plan = query.text(1);
}

void forget_unused_plans(Database& database) {
  database.execute("DELETE FROM trial_plans WHERE id NOT IN (SELECT plan FROM trials)");
}

ExecutedTable::ExecutedTable(Database& database, int64_t project)
    : database_(database),
      project_(project),
      find_function_(database,
                     "SELECT id FROM functions"
                     " WHERE project = ? AND kind = ? AND name = ? AND file = ?"),
      insert_function_(database,
                       "INSERT INTO functions (project, kind, name, file) VALUES (?, ?, ?, ?)"
                       " RETURNING id"),
      find_set_(database, "SELECT id FROM function_sets WHERE hash = ? AND members = ?"),
      insert_set_(database, "INSERT INTO function_sets (hash, members) VALUES (?, ?) RETURNING id"),
      insert_trace_(database,
                    "INSERT INTO function_traces (test, started_us, session, functions)"
                    " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING") {}

namespace {

// The row of a statement that gives one; the statement has run to its end then.
template <class... Values>
int64_t made_row(Database& database, Statement& insert, const Values&... values) {
  Query query(insert, values...);
  if (!query.next()) database.fail(SQLITE_CORRUPT);
  const int64_t row = query.integer(0);
  query.next();
  return row;
}

}  // namespace

int64_t ExecutedTable::function_row(const FunctionId& function) {
  const std::string name = shorten(function.name, longest_function_name);
  const std::string file = shorten(function.file, longest_function_name);
  const int64_t kind = code_of(function.kind);
  if (Query known(find_function_, project_, kind, name, file); known.next())
    return known.integer(0);
  return made_row(database_, insert_function_, project_, kind, name, file);
}

int64_t ExecutedTable::set_row(const std::string& members) {
  const int64_t hash = hash_of_members(members);
  if (Query known(find_set_, hash, Blob{members}); known.next()) return known.integer(0);
  return made_row(database_, insert_set_, hash, Blob{members});
}

void ExecutedTable::insert(SessionId session, int64_t test, const FunctionsRecord& trace) {
  std::set<int64_t> rows;
  for (const FunctionId& function : trace.functions) rows.insert(function_row(function));
  const int64_t set = set_row(packed_rows(std::vector(rows.begin(), rows.end())));
  insert_trace_.run(test, to_microseconds(trace.started), session, set);
}

FunctionTraces latest_functions(Database& database, int64_t project, const std::string& pattern) {
  Transaction snapshot(database, Access::read);
  TraceReader traces;
  Statement newest(database, R"sql(
      SELECT target, name, max(function_traces.started_us), coalesce(commit_id, ''), members
      FROM function_traces
      JOIN tests ON tests.id = test
      JOIN function_sets ON function_sets.id = functions
      LEFT JOIN sessions ON sessions.id = session
      WHERE tests.project = ? GROUP BY test ORDER BY target, name)sql");
  for (Query query(newest, project); query.next();) {
    TestId test{query.text(0), query.text(1)};
    if (glob_match(pattern, to_string(test)))
      traces.add(std::move(test), to_time(query.integer(2)), query.text(3), query.text(4));
  }
  Statement names(database,
                  "SELECT id, kind, name, file FROM functions WHERE project = ? ORDER BY id");
  for (Query query(names, project); query.next();)
    traces.name(query.integer(0),
                {function_kind_from_code(query.integer(1)), query.text(2), query.text(3)});
  return traces.take();
}

namespace {

// Of all projects: sets do not say whose they are, their members do.
std::set<int64_t> functions_in_use(Database& database) {
  std::set<int64_t> used;
  Statement sets(database, "SELECT members FROM function_sets");
  for (Query query(sets); query.next();)
    for (const int64_t row : unpacked_rows(query.text(0))) used.insert(row);
  return used;
}

void forget_unused_functions(Database& database) {
  database.execute(
      "DELETE FROM function_sets WHERE id NOT IN (SELECT functions FROM function_traces)");
  const std::set<int64_t> used = functions_in_use(database);
  std::vector<int64_t> unused;
  Statement all(database, "SELECT id FROM functions");
  for (Query query(all); query.next();)
    if (!used.contains(query.integer(0))) unused.push_back(query.integer(0));
  Statement remove(database, "DELETE FROM functions WHERE id = ?");
  for (const int64_t row : unused) remove.run(row);
}

}  // namespace

int64_t forget_function_traces(Database& database, int64_t project, int64_t before_us) {
  Transaction transaction(database);
  Statement remove(database, R"sql(
      DELETE FROM function_traces WHERE started_us < ?1
        AND test IN (SELECT id FROM tests WHERE project = ?2)
        AND EXISTS (SELECT 1 FROM function_traces AS newer
                    WHERE newer.test = function_traces.test
                      AND (newer.started_us, newer.session)
                          > (function_traces.started_us, function_traces.session)))sql");
  remove.run(before_us, project);
  const int64_t removed = database.changes();
  if (removed > 0) forget_unused_functions(database);
  transaction.commit();
  return removed;
}

}  // namespace unflake
