#include "history/sqlite/staging.h"

#include <algorithm>
#include <utility>

namespace unflake {
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

}  // namespace unflake
