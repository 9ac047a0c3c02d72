#include "store/sqlite/trials.h"

#include <utility>

#include "store/sqlite/sums.h"

namespace unflake {

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

}  // namespace unflake
