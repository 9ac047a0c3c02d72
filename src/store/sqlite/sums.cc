#include "store/sqlite/sqlite_parts.h"

#include <algorithm>
#include <string>

namespace unflake {

RunRow read_run(const Query& query) {
  return {.test = query.integer(0),
          .started_us = query.integer(1),
          .session = query.integer(2),
          .attempt = query.integer(3),
          .duration_us = query.integer(4),
          .outcome = query.integer(5),
          .signature = query.integer(6),
          .plan = query.integer(7)};
}

namespace {

void merge_totals(Query& query, Totals& totals) {
  while (query.next()) {
    Total& total = totals.totals[{query.integer(0), query.integer(1), query.integer(2)}];
    total.merge({.runs = sane_count(query.integer(3)),
                 .sum_us = query.real(4),
                 .min_us = query.integer(5),
                 .max_us = query.integer(6),
                 .first_us = query.integer(7),
                 .first_session = query.integer(8),
                 .last_us = query.integer(9),
                 .last_session = query.integer(10)});
  }
}

template <class... Test>
Totals read_folded(Database& database, const std::string& condition, Test... test) {
  Totals totals;
  Statement folded(database,
                   "SELECT test, outcome, signature, runs, sum_us, min_us, max_us, first_us,"
                   " first_session, last_us, last_session FROM totals" +
                       condition);
  Query folded_rows(folded, test...);
  merge_totals(folded_rows, totals);
  return totals;
}

}  // namespace

Totals read_totals(Database& database) {
  Totals totals = read_folded(database, "");
  for_each_unplaced(database, [&](const RunRow& run) { totals.add(run); });
  return totals;
}

Totals read_totals(Database& database, int64_t test) {
  Totals totals = read_folded(database, " WHERE test = ?", test);
  for_each_unplaced(database, test, [&](const RunRow& run) { totals.add(run); });
  return totals;
}

TotalsTables::TotalsTables(Database& database)
    : add_total_(database, R"sql(
      INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs,
        sum_us = sum_us + excluded.sum_us,
        min_us = min(min_us, excluded.min_us),
        max_us = max(max_us, excluded.max_us),
        first_session = iif(excluded.first_us < first_us, excluded.first_session, first_session),
        first_us = min(first_us, excluded.first_us),
        last_session = iif(excluded.last_us >= last_us, excluded.last_session, last_session),
        last_us = max(last_us, excluded.last_us))sql"),
      add_bucket_(database,
                  "INSERT INTO histograms VALUES (?, ?, ?, ?)"
                  " ON CONFLICT DO UPDATE SET runs = runs + excluded.runs") {}

void TotalsTables::add(const Totals& totals) {
  for (const auto& [key, total] : totals.totals)
    add_total_.run(key.test, key.outcome, key.signature, total.runs, total.sum_us, total.min_us,
                   total.max_us, total.first_us, total.first_session, total.last_us,
                   total.last_session);
  for (const auto& [key, histogram] : totals.durations)
    for (const auto& [bucket, runs] : histogram.buckets())
      add_bucket_.run(key.test, key.failing, bucket, runs);
}

namespace {

#define UNFLAKE_STAGED_OF " FROM staged_runs WHERE session = ?1 AND test = ?2 "
#define UNFLAKE_PLACED_OF                                                        \
  " FROM runs WHERE test = ?2 AND session = ?1"                                  \
  " AND started_us >= (SELECT first_us FROM placed_sessions WHERE session = ?1)" \
  " AND started_us <= (SELECT last_us FROM placed_sessions WHERE session = ?1) "

std::optional<RunRow> find(Statement& statement, const RunRow& run) {
  Query query(statement, run.session, run.test, run.started_us, run.attempt);
  if (!query.next()) return std::nullopt;
  return read_run(query);
}

}  // namespace

SessionRuns::SessionRuns(Database& database)
    : has_placed_(database, "SELECT 1 FROM placed_sessions WHERE session = ?"),
      holds_(database,
             "SELECT 1 FROM runs WHERE (test, started_us, session, attempt) = (?, ?, ?, ?)"),
      passes_(database, "SELECT (SELECT count(*)" UNFLAKE_STAGED_OF
                        "AND plan = 0 AND outcome = 0)"
                        " + (SELECT count(*)" UNFLAKE_PLACED_OF "AND plan = 0 AND outcome = 0)"),
      passed_(database, "SELECT EXISTS (SELECT 1" UNFLAKE_STAGED_OF
                        "AND plan = 0 AND outcome = 0)"
                        " OR EXISTS (SELECT 1" UNFLAKE_PLACED_OF "AND plan = 0 AND outcome = 0)"),
      staged_before_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_STAGED_OF
                               "AND (started_us, attempt) < (?3, ?4)"
                               " ORDER BY started_us DESC, attempt DESC LIMIT 1"),
      placed_before_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_PLACED_OF
                               "AND (started_us, session, attempt) < (?3, ?1, ?4)"
                               " ORDER BY started_us DESC, session DESC, attempt DESC LIMIT 1"),
      staged_after_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_STAGED_OF
                              "AND (started_us, attempt) > (?3, ?4)"
                              " ORDER BY started_us, attempt LIMIT 1"),
      placed_after_(database, "SELECT " UNFLAKE_RUN_COLUMNS UNFLAKE_PLACED_OF
                              "AND (started_us, session, attempt) > (?3, ?1, ?4)"
                              " ORDER BY started_us, session, attempt LIMIT 1") {}

bool SessionRuns::has_placed(int64_t session) {
  return Query(has_placed_, session).next();
}

bool SessionRuns::holds(const RunRow& run) {
  return Query(holds_, run.test, run.started_us, run.session, run.attempt).next();
}

int64_t SessionRuns::passes(int64_t session, int64_t test) {
  Query query(passes_, session, test);
  return query.next() ? query.integer(0) : 0;
}

bool SessionRuns::passed(int64_t session, int64_t test) {
  Query query(passed_, session, test);
  return query.next() && query.integer(0) != 0;
}

std::optional<RunRow> SessionRuns::before(const RunRow& run) {
  return nearest(staged_before_, placed_before_, run, true);
}

std::optional<RunRow> SessionRuns::after(const RunRow& run) {
  return nearest(staged_after_, placed_after_, run, false);
}

std::optional<RunRow> SessionRuns::nearest(Statement& staged, Statement& placed, const RunRow& run,
                                           bool latest) {
  const auto one = find(staged, run), other = find(placed, run);
  if (!one || !other) return one ? one : other;
  return (one->by_session() > other->by_session()) == latest ? one : other;
}

namespace {

// No run takes longer than thirty years; what claims to must not make a sum overflow.
int64_t sane_duration(const RunRow& run) {
  return std::clamp<int64_t>(run.duration_us, 0, 1'000'000'000'000'000);
}

int64_t end_of(const RunRow& run) {
  return std::clamp(run.started_us, INT64_MIN / 2, INT64_MAX / 2) + sane_duration(run);
}

bool is_next_attempt(const RunRow& run, const RunRow& next) {
  return run.test == next.test && next.attempt == run.attempt + 1;
}

// The passing run that followed a failing one: it was made because of the failure.
bool is_retry(const RunRow& run, const RunRow& next) {
  return is_next_attempt(run, next) && run.failed_by_itself() && next.passed_by_itself();
}

bool contains(std::span<const RunRow> runs, const RunRow& run) {
  return std::ranges::binary_search(runs, run.by_session(), {}, &RunRow::by_session);
}

}  // namespace

SessionSums::SessionSums(Database& database, SessionRuns& stored)
    : stored_(stored),
      add_total_(database,
                 "INSERT INTO session_totals VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                 " runs = runs + excluded.runs, failures = failures + excluded.failures,"
                 " last_us = max(last_us, excluded.last_us)"),
      failed_tests_(database, "SELECT DISTINCT test FROM incidents WHERE session = ?"),
      add_passes_(database,
                  "UPDATE incidents SET passes = passes + ?3, flaky = max(flaky, passes + ?3 > 0)"
                  " WHERE session = ?1 AND test = ?2"),
      passes_(database, "SELECT passes FROM incidents WHERE session = ? AND test = ? LIMIT 1"),
      add_incident_(database, R"sql(
          INSERT INTO incidents VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?6 > 0)
          ON CONFLICT DO UPDATE SET
            outcome = iif(excluded.first_us < first_us, excluded.outcome, outcome),
            failures = failures + excluded.failures,
            first_us = min(first_us, excluded.first_us),
            last_us = max(last_us, excluded.last_us),
            wasted_us = wasted_us + excluded.wasted_us)sql") {}

void SessionSums::add(std::span<const RunRow> runs) {
  if (runs.empty()) return;
  add_totals(runs);
  const std::set<int64_t> failed_before = failed_tests(runs.front().session);
  for (size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    while (end < runs.size() && runs[end].test == runs[begin].test) ++end;
    const auto of_test = runs.subspan(begin, end - begin);
    const bool failed = failed_before.contains(of_test.front().test);
    if (failed || std::ranges::any_of(of_test, &RunRow::failed_by_itself))
      add_test(of_test, failed);
  }
}

void SessionSums::add_totals(std::span<const RunRow> runs) {
  int64_t count = 0, failures = 0, last_us = INT64_MIN;
  for (const RunRow& run : runs) {
    if (run.plan != 0) continue;
    ++count;
    failures += run.failed_by_itself();
    last_us = std::max(last_us, end_of(run));
  }
  if (count > 0) add_total_.run(runs.front().session, count, failures, last_us);
}

std::set<int64_t> SessionSums::failed_tests(int64_t session) {
  std::set<int64_t> tests;
  for (Query query(failed_tests_, session); query.next();) tests.insert(query.integer(0));
  return tests;
}

void SessionSums::add_test(std::span<const RunRow> runs, bool failed_before) {
  const int64_t session = runs.front().session, test = runs.front().test;
  Incidents incidents;
  for (const RunRow& run : runs) {
    if (!run.failed_by_itself()) continue;
    auto [at, is_new] = incidents.try_emplace(run.signature);
    Incident& incident = at->second;
    if (is_new) incident = {.outcome = run.outcome, .first_us = run.started_us};
    ++incident.failures;
    incident.last_us = run.started_us;
    incident.wasted_us += sane_duration(run);
  }
  add_waste(runs, incidents);
  const int64_t passes = std::ranges::count_if(runs, &RunRow::passed_by_itself);
  if (failed_before && passes > 0) add_passes_.run(session, test, passes);
  const int64_t all =
      failed_before ? passes_of_failed(session, test) : stored_.passes(session, test);
  for (const auto& [signature, sums] : incidents)
    add_incident_.run(session, test, signature, sums.outcome, sums.failures, all, sums.first_us,
                      sums.last_us, sums.wasted_us);
}

// Each pair of a failure and its retry is found once: when the later of the two arrives.
void SessionSums::add_waste(std::span<const RunRow> runs, Incidents& incidents) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunRow& run = runs[i];
    if (run.passed_by_itself() && run.attempt > 1) {
      const bool follows = i > 0 && is_next_attempt(runs[i - 1], run);
      const auto before = follows ? runs[i - 1] : stored_.before(run);
      if (!before || !is_retry(*before, run)) continue;
      const auto [at, is_new] = incidents.try_emplace(before->signature);
      if (is_new)
        at->second = {.outcome = before->outcome,
                      .first_us = before->started_us,
                      .last_us = before->started_us};
      at->second.wasted_us += sane_duration(run);
    } else if (run.failed_by_itself()) {
      const bool is_followed = i + 1 < runs.size() && is_next_attempt(run, runs[i + 1]);
      const auto after = is_followed ? std::nullopt : stored_.after(run);
      if (after && is_retry(run, *after) && !contains(runs, *after))
        incidents[run.signature].wasted_us += sane_duration(*after);
    }
  }
}

int64_t SessionSums::passes_of_failed(int64_t session, int64_t test) {
  Query query(passes_, session, test);
  return query.next() ? query.integer(0) : 0;
}

}  // namespace unflake
