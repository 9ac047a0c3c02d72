#include "history/sqlite/placement.h"

#include <algorithm>

namespace unflake {
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

}  // namespace unflake
