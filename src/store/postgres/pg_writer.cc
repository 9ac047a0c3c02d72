
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/postgres/pg_parts.h"
#include "store/store.h"
#include "store/summary.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t fold_lock = 0x756e666c616b6502;  // "unflake", 2

// An answer has to add up what waits; so many rows take it some ten milliseconds.
constexpr int64_t many_fresh = 20'000;

// What one transaction takes, and holds in memory.
constexpr int64_t most_at_once = 100'000;

bool is_due(PgConnection& connection) {
  return connection
             .run("SELECT count(*) FROM (SELECT FROM fresh_runs LIMIT $1::bigint) AS waiting",
                  many_fresh)
             .integer(0, 0) >= many_fresh;
}

void add_totals(PgConnection& connection, const Totals& totals) {
  std::vector<int64_t> test, outcome, signature, runs, min, max, first, first_session, last,
      last_session;
  std::vector<double> sum;
  for (const auto& [key, total] : totals.totals) {
    test.push_back(key.test);
    outcome.push_back(key.outcome);
    signature.push_back(key.signature);
    runs.push_back(total.runs);
    sum.push_back(total.sum_us);
    min.push_back(total.min_us);
    max.push_back(total.max_us);
    first.push_back(total.first_us);
    first_session.push_back(total.first_session);
    last.push_back(total.last_us);
    last_session.push_back(total.last_session);
  }
  connection.run(R"sql(
      INSERT INTO totals AS t (test, outcome, signature, runs, sum_us, min_us, max_us,
                               first_us, first_session, last_us, last_session)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::float8[],
                           $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
                           $11::bigint[])
      ON CONFLICT (test, outcome, signature) DO UPDATE SET
        runs = t.runs + excluded.runs,
        sum_us = t.sum_us + excluded.sum_us,
        min_us = least(t.min_us, excluded.min_us),
        max_us = greatest(t.max_us, excluded.max_us),
        first_session = CASE WHEN excluded.first_us < t.first_us THEN excluded.first_session
                             ELSE t.first_session END,
        first_us = least(t.first_us, excluded.first_us),
        last_session = CASE WHEN excluded.last_us >= t.last_us THEN excluded.last_session
                            ELSE t.last_session END,
        last_us = greatest(t.last_us, excluded.last_us))sql",
                 test, outcome, signature, runs, sum, min, max, first, first_session, last,
                 last_session);
}

void add_histograms(PgConnection& connection, const Totals& totals) {
  std::vector<int64_t> test, failing, bucket, runs;
  for (const auto& [key, histogram] : totals.durations)
    for (const auto& [number, count] : histogram.buckets()) {
      test.push_back(key.test);
      failing.push_back(key.failing);
      bucket.push_back(number);
      runs.push_back(count);
    }
  connection.run(R"sql(
      INSERT INTO histograms AS h (test, failing, bucket, runs)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
      ON CONFLICT (test, failing, bucket) DO UPDATE SET runs = h.runs + excluded.runs)sql",
                 test, failing, bucket, runs);
}

// Says how many there were; none while somebody else folds.
int fold(PgConnection& connection) {
  PgTransaction transaction(connection);
  const bool mine = connection.run("SELECT pg_try_advisory_xact_lock($1::bigint)::int", fold_lock)
                        .integer(0, 0) != 0;
  if (!mine) return 0;
  const PgRows rows = connection.run(
      "DELETE FROM fresh_runs WHERE ctid = ANY (ARRAY("
      "SELECT ctid FROM fresh_runs LIMIT $1::bigint)) RETURNING " UNFLAKE_RUN_COLUMNS,
      most_at_once);
  Totals totals;
  std::vector<RunRow> runs;
  for (int row = 0; row < rows.size(); ++row) {
    runs.push_back(read_run(rows, row));
    totals.add(runs.back());
  }
  add_totals(connection, totals);
  add_histograms(connection, totals);
  count_incidents_of_open_sessions(connection, runs);
  transaction.commit();
  return rows.size();
}

}  // namespace

void fold_when_due(PgConnection& connection) {
  if (!is_due(connection) || fold(connection) == 0) return;
  // Whoever reads the table passes by the rows that were deleted, until they are cleared away.
  connection.run("VACUUM fresh_runs");
}

void fold_everything(PgConnection& connection) {
  while (fold(connection) > 0) {
  }
}

namespace {

constexpr int64_t slots = 20;
constexpr int64_t outputs_per_test = 200;  // for the test whose every failure has another signature
constexpr int64_t pause_us = 1'000'000;
constexpr size_t most_series = 100'000;

}  // namespace

bool PgOutputs::wants(const RunRow& run) {
  if (series_.size() > most_series) series_.clear();
  Series& series = series_[{run.test, run.signature}];
  if (series.kept >= slots && run.started_us - series.last_us < pause_us) return false;
  series = {series.kept + 1, run.started_us};
  return true;
}

// The slots of a signature are used in turn, so that the newest output takes the place of the
// oldest. Of more than there are slots for, the last ones stay.
void PgOutputs::keep(const std::vector<KeptOutput>& outputs) {
  if (outputs.empty()) return;
  std::vector<int64_t> tests, signatures, started;
  std::vector<std::string> bytes;
  for (const auto& [run, output] : outputs) {
    tests.push_back(run.test);
    signatures.push_back(run.signature);
    started.push_back(run.started_us);
    bytes.push_back("\\x" + hexadecimal(cut_middle(output, longest_kept_output)));
  }
  connection_.run(R"sql(
      WITH numbered AS (
        SELECT *, row_number() OVER (PARTITION BY test, signature ORDER BY started_us) AS number,
               count(*) OVER (PARTITION BY test, signature) AS count
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
          AS given (test, signature, started_us, output))
      INSERT INTO outputs (test, signature, slot, started_us, output)
      SELECT test, signature, (number + coalesce(
               (SELECT slot FROM outputs WHERE outputs.test = numbered.test
                  AND outputs.signature = numbered.signature
                ORDER BY started_us DESC, slot DESC LIMIT 1), -1)) % $5::bigint AS slot,
             started_us, output::bytea
      FROM numbered WHERE number > count - $5::bigint
      ORDER BY 1, 2, 3
      ON CONFLICT (test, signature, slot) DO UPDATE
        SET started_us = excluded.started_us, output = excluded.output)sql",
                  tests, signatures, started, bytes, slots);
  connection_.run(R"sql(
      DELETE FROM outputs USING (
        SELECT test, signature, slot,
               row_number() OVER (PARTITION BY test ORDER BY started_us DESC) AS number
        FROM outputs WHERE test = ANY ($1::bigint[])) AS old
      WHERE number > $2::bigint AND (outputs.test, outputs.signature, outputs.slot)
            = (old.test, old.signature, old.slot))sql",
                  tests, outputs_per_test);
}

namespace {

// So many rows of one test go in one transaction.
constexpr int64_t rows_at_once = 100'000;

// Never goes back: what has been forgotten stays so, whatever is kept from now on.
void move_horizon(PgConnection& connection, int64_t project, int64_t passing, int64_t failing) {
  connection.run(
      "INSERT INTO horizons AS known (project, passing_us, failing_us) VALUES ($1, $2, $3)"
      " ON CONFLICT (project) DO UPDATE SET"
      " passing_us = greatest(known.passing_us, excluded.passing_us),"
      " failing_us = greatest(known.failing_us, excluded.failing_us)",
      project, passing, failing);
}

std::vector<int64_t> tests_of(PgConnection& connection, int64_t project) {
  const PgRows rows = connection.run("SELECT id FROM tests WHERE project = $1::bigint", project);
  std::vector<int64_t> tests;
  for (int row = 0; row < rows.size(); ++row) tests.push_back(rows.integer(row, 0));
  return tests;
}

template <class... Values>
int64_t delete_of_tests(PgConnection& connection, const std::vector<int64_t>& tests,
                        const char* sql, const Values&... values) {
  int64_t removed = 0;
  for (const int64_t test : tests)
    for (int64_t last = rows_at_once; last == rows_at_once; removed += last)
      last = connection.run(sql, test, rows_at_once, values...).changed();
  return removed;
}

// Those that are too old, and those after the newest ones.
int64_t forget_trials(PgConnection& connection, const std::vector<int64_t>& tests,
                      const TrialBounds& bounds) {
  const int64_t removed = delete_of_tests(connection, tests, R"sql(
      DELETE FROM trials WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM trials
        WHERE test = $1::bigint AND started_us < greatest($3::bigint,
          (SELECT started_us FROM trials WHERE test = $1::bigint
           ORDER BY started_us DESC LIMIT 1 OFFSET $4::bigint))
        LIMIT $2::bigint)))sql",
                                          bounds.before_us, bounds.newer);
  if (removed > 0) forget_unused_plans(connection);
  return removed;
}

}  // namespace

RetentionCount forget_runs(PgConnection& connection, int64_t project, const Retention& retention,
                           TimePoint now) {
  const std::vector<int64_t> tests = tests_of(connection, project);
  const int64_t passing = cut_off(retention.passing_runs, now);
  const int64_t failing = cut_off(retention.failing_runs, now);
  RetentionCount count;
  if (retention.trials || retention.most_trials)
    count.trials = forget_trials(connection, tests, trial_bounds(retention, now));
  if (retention.trials)
    count.traces = forget_function_traces(connection, project, cut_off(retention.trials, now));
  if (retention.passing_runs || retention.failing_runs) {
    move_horizon(connection, project, passing, failing);
    count.runs = delete_of_tests(connection, tests, R"sql(
        DELETE FROM runs WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM runs
          WHERE test = $1::bigint AND started_us < greatest($3::bigint, $4::bigint)
            AND started_us < CASE WHEN outcome IN (0, 4) THEN $3::bigint ELSE $4::bigint END
          LIMIT $2::bigint)))sql",
                                 passing, failing);
  }
  if (retention.outputs)
    count.outputs = delete_of_tests(connection, tests, R"sql(
        DELETE FROM outputs WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM outputs WHERE test = $1::bigint AND started_us < $3::bigint
          LIMIT $2::bigint)))sql",
                                    cut_off(retention.outputs, now));
  return count;
}

std::optional<TimePoint> forgotten_before(PgConnection& connection, int64_t project) {
  const PgRows rows = connection.run(
      "SELECT greatest(passing_us, failing_us) FROM horizons WHERE project = $1::bigint", project);
  if (rows.empty()) return std::nullopt;
  return to_time(rows.integer(0, 0));
}

namespace {

// After so many runs of one's own it is time to look whether others have left many, too.
constexpr int64_t runs_between_folds = 10'000;

// Gives the new runs that failed, or whose tests have failed in their session.
constexpr const char* insert_sql = R"sql(
    WITH new AS (
      INSERT INTO runs (test, started_us, session, attempt, duration_us, outcome, signature, plan)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                           $6::bigint[], $7::bigint[], $8::bigint[])
             AS given (test, started_us, session, attempt, duration_us, outcome, signature, plan)
      WHERE NOT EXISTS (
        SELECT FROM horizons WHERE project = $9::bigint AND given.started_us
          < CASE WHEN outcome IN (0, 4) THEN passing_us ELSE failing_us END)
      ON CONFLICT DO NOTHING
      RETURNING *),
    fresh AS (
      INSERT INTO fresh_runs (test, started_us, session, attempt, duration_us, outcome, signature,
                              plan)
      SELECT test, started_us, session, attempt, duration_us, outcome, signature, plan FROM new),
    sums AS (
      INSERT INTO session_totals AS known (session, runs, failures, first_us, last_us)
      SELECT session, count(*), count(*) FILTER (WHERE outcome NOT IN (0, 4)), min(started_us),
             max(greatest(started_us, least(started_us, 4611686018427387903)
                                      + least(duration_us, 1000000000000000)))
      FROM new WHERE plan = 0 GROUP BY session
      ON CONFLICT (session) DO UPDATE SET
        runs = known.runs + excluded.runs, failures = known.failures + excluded.failures,
        first_us = least(known.first_us, excluded.first_us),
        last_us = greatest(known.last_us, excluded.last_us))
    SELECT test, started_us, session, attempt, duration_us, outcome, signature, plan FROM new
    WHERE outcome NOT IN (0, 4) OR EXISTS (
      SELECT FROM incidents WHERE incidents.session = new.session AND incidents.test = new.test))sql";

// Runs under a plan say nothing of what a test does by itself.
std::vector<int64_t> tests_to_count(std::span<const RunRow> runs) {
  std::set<int64_t> tests;
  for (const RunRow& run : runs)
    if (run.plan == 0) tests.insert(run.test);
  return {tests.begin(), tests.end()};
}

}  // namespace

PgWriter::PgWriter(PgConnection& connection, int64_t project)
    : connection_(connection),
      project_(project),
      names_(connection, project),
      outputs_(connection) {}

SessionId PgWriter::begin_session(const SessionRecord& session, const std::string& uuid) {
  const Surroundings& from = session.surroundings;
  std::optional<int64_t> seed;
  if (session.seed) seed = static_cast<int64_t>(*session.seed);
  connection_.run(
      "INSERT INTO sessions (uuid, started_us, commit_id, branch, dirty, machine,"
      " unflake_version, command_line, seed, project, build)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
      uuid, to_microseconds(session.started), from.commit, from.branch, from.dirty, from.machine,
      from.unflake_version, session.command_line, seed, project_,
      from.build.empty() ? uuid : from.build);
  const PgRows rows = connection_.run("SELECT id FROM sessions WHERE md5(uuid) = md5($1)", uuid);
  const SessionId id = rows.empty() ? 0 : rows.integer(0, 0);
  require_session(id);
  return id;
}

void PgWriter::record(SessionId session, const RunRecord& run) {
  if (!is_plain(run)) return record_all(session, {&run, 1});
  require_session(session);
  const std::vector<RunRow> rows = names_.rows_of(session, {&run, 1});
  const std::vector<RunRow> added = is_failing(run.outcome) && !run.output.empty()
                                        ? insert_with_output(run, rows[0])
                                        : insert(rows);
  for (const int64_t test : tests_to_count(added))
    if (is_time_to_count(session, test)) count_incidents(connection_, session, {test});
  fold_after(1);
}

void PgWriter::record_all(SessionId session, std::span<const RunRecord> runs) {
  if (runs.empty()) return;
  require_session(session);
  const SplitRuns split(runs);
  const std::vector<RunRow> rows = names_.rows_of(session, split.plain());
  const std::vector<RunRow> trials = names_.rows_of(session, split.trials());
  PgTransaction transaction(connection_);
  lock_session(session);
  // Trials alone need not wait for the server's disk: the next search makes others.
  if (rows.empty()) connection_.execute("SET LOCAL synchronous_commit = off");
  if (!trials.empty()) insert_trials(connection_, split.trials(), trials);
  if (!rows.empty()) {
    const std::vector<RunRow> added = insert(rows);
    count_incidents(connection_, session, tests_to_count(added));
    keep_outputs(split.plain(), rows, added);
  }
  transaction.commit();
  fold_after(static_cast<int64_t>(rows.size()));
}

void PgWriter::record_functions(SessionId session, std::span<const FunctionsRecord> traces) {
  if (traces.empty()) return;
  require_session(session);
  std::vector<int64_t> tests;
  for (const FunctionsRecord& trace : traces) tests.push_back(names_.test_row(trace.test));
  insert_functions(connection_, project_, session, traces, tests);
}

void PgWriter::suppress(SessionId session, const TestId& test, const std::string& signature) {
  require_session(session);
  connection_.run("INSERT INTO suppressions VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", session,
                  names_.test_row(test), names_.signature_row(signature));
}

void PgWriter::end_session(SessionId session) {
  {
    PgTransaction transaction(connection_);
    connection_.run("UPDATE sessions SET ended_us = $1 WHERE id = $2",
                    to_microseconds(std::chrono::system_clock::now()), session);
    settle_incidents(connection_, session);
    transaction.commit();
  }
  forget_session(session);
}

void PgWriter::stop_session(SessionId session) {
  {
    PgTransaction transaction(connection_);
    settle_incidents(connection_, session);
    transaction.commit();
  }
  forget_session(session);
}

void PgWriter::forget_session(SessionId session) {
  std::erase_if(uncounted_, [&](const auto& runs) { return runs.first.first == session; });
  fold_after(runs_between_folds);
}

std::vector<RunRow> PgWriter::insert(std::vector<RunRow> rows) {
  std::ranges::sort(rows, {}, &RunRow::by_test);
  const RunColumns runs(rows);
  const PgRows found =
      connection_.run(insert_sql, runs.test, runs.started_us, runs.session, runs.attempt,
                      runs.duration_us, runs.outcome, runs.signature, runs.plan, project_);
  std::vector<RunRow> added;
  for (int row = 0; row < found.size(); ++row) added.push_back(read_run(found, row));
  std::ranges::sort(added, {}, &RunRow::by_test);
  return added;
}

std::vector<RunRow> PgWriter::insert_with_output(const RunRecord& run, const RunRow& row) {
  PgTransaction transaction(connection_);
  std::vector<RunRow> added = insert({row});
  keep_outputs({&run, 1}, {row}, added);
  transaction.commit();
  return added;
}

void PgWriter::keep_outputs(std::span<const RunRecord> runs, const std::vector<RunRow>& rows,
                            const std::vector<RunRow>& added) {
  std::vector<KeptOutput> outputs;
  for (size_t i = 0; i < runs.size(); ++i)
    if (is_failing(runs[i].outcome) && !runs[i].output.empty() &&
        std::ranges::binary_search(added, rows[i].by_test(), {}, &RunRow::by_test) &&
        outputs_.wants(rows[i]))
      outputs.push_back({rows[i], runs[i].output});
  outputs_.keep(outputs);
}

// Counting takes the longer, the more runs a test has in a session. So it waits for an eighth more
// of them, and is made up for when the session ends or its runs are folded.
bool PgWriter::is_time_to_count(int64_t session, int64_t test) {
  Uncounted& runs = uncounted_[{session, test}];
  ++runs.since;
  if (runs.since <= runs.counted / 8) return false;
  runs = {.counted = runs.counted + runs.since, .since = 0};
  return true;
}

// Two processes that write to one session must see each other's runs when they count incidents.
void PgWriter::lock_session(SessionId session) {
  connection_.run("SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE", session);
}

void PgWriter::require_session(SessionId session) {
  if (checked_ == std::pair(session, connection_.generation())) return;
  const PgRows rows = connection_.run(
      "SELECT FROM sessions WHERE id = $1::bigint AND project = $2::bigint", session, project_);
  if (rows.empty())
    throw PgFailure(
        internal_error(fmt::format("the history has no session {} of this project", session),
                       connection_.place()),
        PgFailure::Cure::none);
  checked_ = {session, connection_.generation()};
}

// The runs are safe already, so what fails here is left to a later time.
void PgWriter::fold_after(int64_t runs) {
  unfolded_ += runs;
  if (unfolded_ < runs_between_folds) return;
  unfolded_ = 0;
  try {
    fold_when_due(connection_);
  } catch (const PgFailure&) {
  }
}

}  // namespace unflake
