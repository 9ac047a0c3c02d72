
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "store/sqlite/sqlite_parts.h"
#include "store/values.h"

namespace unflake {
namespace {

// `runs` is ordered by test, and is read once for so many runs, which are then sorted in memory.
constexpr int64_t runs_in_memory = 1'000'000;

struct VisitedSession {
  int64_t id = 0;
  SessionRecord record;
  int64_t first_us = INT64_MAX, last_us = INT64_MIN, runs = 0;  // in `runs`
};

// Sessions that are visited together, and their runs.
struct Chunk {
  std::vector<VisitedSession> sessions;
  std::map<int64_t, std::vector<RunRow>> runs;
  int64_t first_us = INT64_MAX, last_us = INT64_MIN, size = 0;

  void add(VisitedSession session) {
    runs[session.id];
    first_us = std::min(first_us, session.first_us);
    last_us = std::max(last_us, session.last_us);
    size += session.runs + 1;
    sessions.push_back(std::move(session));
  }
  void add(const RunRow& run) {
    const auto found = runs.find(run.session);
    if (found != runs.end()) found->second.push_back(run);
  }
};

VisitedSession read_session(const Query& query) {
  VisitedSession session;
  session.id = query.integer(0);
  SessionRecord& record = session.record;
  record.uuid = query.text(1);
  record.started = to_time(query.integer(2));
  record.surroundings = {.commit = query.text(3),
                         .branch = query.text(4),
                         .dirty = query.integer(5) != 0,
                         .machine = query.text(6),
                         .unflake_version = query.text(7),
                         .build = query.text(8) == record.uuid ? "" : query.text(8)};
  record.command_line = query.text(9);
  if (!query.is_null(10)) record.seed = static_cast<uint64_t>(query.integer(10));
  if (query.is_null(11)) return session;
  session.first_us = query.integer(11);
  session.last_us = query.integer(12);
  session.runs = std::clamp<int64_t>(query.integer(13), 0, runs_in_memory);
  return session;
}

class Visit {
 public:
  Visit(Database& database, int64_t project, const Store::Visitor& visitor)
      : database_(database),
        visitor_(visitor),
        placed_(database, "SELECT " UNFLAKE_RUN_COLUMNS
                          " FROM runs WHERE test = ? AND started_us >= ? AND started_us <= ?"),
        staged_(database, "SELECT " UNFLAKE_RUN_COLUMNS " FROM staged_runs WHERE session = ?"),
        fresh_(database, "SELECT " UNFLAKE_RUN_COLUMNS " FROM fresh_runs"),
        signature_(database,
                   "SELECT signature, kind, file, line, function, expression, message"
                   " FROM signatures WHERE id = ?"),
        output_(database,
                "SELECT output FROM outputs WHERE test = ? AND signature = ? AND started_us = ?"),
        suppressed_(database,
                    "SELECT target, name, signatures.signature FROM suppressions"
                    " JOIN tests ON tests.id = test"
                    " JOIN signatures ON signatures.id = suppressions.signature"
                    " WHERE session = ? ORDER BY target, name"),
        trials_(database, project) {
    Statement tests(database,
                    "SELECT id, target, name FROM tests WHERE project = ? ORDER BY target, name");
    for (Query query(tests, project); query.next();)
      tests_[query.integer(0)] = {static_cast<int64_t>(tests_.size()),
                                  {query.text(1), query.text(2)}};
  }

  Result<void> sessions_of(int64_t project) {
    Statement sessions(database_, R"sql(
        SELECT id, uuid, started_us, commit_id, branch, dirty, machine, unflake_version, build,
               command_line, seed, first_us, last_us, runs
        FROM sessions LEFT JOIN placed_sessions ON session = id
        WHERE project = ? ORDER BY started_us, id)sql");
    Chunk chunk;
    for (Query query(sessions, project); query.next();) {
      chunk.add(read_session(query));
      if (chunk.size < runs_in_memory) continue;
      if (const Result<void> told = tell(chunk); !told) return told;
      chunk = {};
    }
    return tell(chunk);
  }

 private:
  struct Named {
    int64_t rank = 0;  // in the order of names
    TestId id;
  };

  Result<void> tell(Chunk& chunk) {
    read_runs(chunk);
    for (const VisitedSession& session : chunk.sessions) {
      if (const Result<void> told = visitor_.session(session.record); !told) return told;
      std::vector<RunRow>& runs = chunk.runs[session.id];
      std::ranges::sort(runs, {}, [&](const RunRow& run) {
        return std::tuple(run.started_us, tests_.at(run.test).rank, run.attempt);
      });
      for (const RunRow& run : runs)
        if (const Result<void> told = visitor_.run(record_of(run)); !told) return told;
      if (const Result<void> told = tell_trials(session.id); !told) return told;
      if (const Result<void> told = tell_suppressions(session.id); !told) return told;
    }
    return {};
  }

  Result<void> tell_trials(int64_t session) {
    while (const auto row = trials_.next_of(session)) {
      if (!tests_.contains(row->test)) continue;
      RunRecord trial = record_of(*row);
      trials_.describe(*row, trial);
      trial.output.clear();  // that of a run which began at the same moment
      if (const Result<void> told = visitor_.run(trial); !told) return told;
    }
    return {};
  }

  Result<void> tell_suppressions(int64_t session) {
    if (!visitor_.suppression) return {};
    for (Query query(suppressed_, session); query.next();)
      if (const Result<void> told =
              visitor_.suppression({query.text(0), query.text(1)}, query.text(2));
          !told)
        return told;
    return {};
  }

  void read_runs(Chunk& chunk) {
    for (const auto& [test, named] : tests_)
      for (Query query(placed_, test, chunk.first_us, chunk.last_us); query.next();)
        chunk.add(read_run(query));
    for (const VisitedSession& session : chunk.sessions)
      for (Query query(staged_, session.id); query.next();) add_known(chunk, read_run(query));
    for (Query query(fresh_); query.next();) add_known(chunk, read_run(query));
  }

  void add_known(Chunk& chunk, const RunRow& run) {
    if (tests_.contains(run.test)) chunk.add(run);
  }

  RunRecord record_of(const RunRow& row) {
    RunRecord run;
    run.test = tests_.at(row.test).id;
    run.attempt = static_cast<int>(row.attempt);
    run.started = to_time(row.started_us);
    run.outcome = outcome_from_code(row.outcome);
    run.duration = Duration(row.duration_us);
    if (is_failing(run.outcome)) add_failure(row, run);
    return run;
  }

  void add_failure(const RunRow& row, RunRecord& run) {
    if (Query query(signature_, row.signature); row.signature != 0 && query.next()) {
      run.signature = query.text(0);
      run.failure = Failure{.kind = failure_from_code(query.integer(1)),
                            .file = query.text(2),
                            .line = static_cast<int>(query.integer(3)),
                            .function = query.text(4),
                            .expression = query.text(5),
                            .message = query.text(6)};
    }
    if (Query query(output_, row.test, row.signature, row.started_us); query.next())
      run.output = query.text(0);
  }

  Database& database_;
  const Store::Visitor& visitor_;
  Statement placed_, staged_, fresh_, signature_, output_, suppressed_;
  TrialStream trials_;
  std::map<int64_t, Named> tests_;
};

}  // namespace

Result<void> visit_history(Database& database, int64_t project, const Store::Visitor& visitor) {
  Transaction snapshot(database, Access::read);
  return Visit(database, project, visitor).sessions_of(project);
}

}  // namespace unflake
