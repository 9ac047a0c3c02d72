#include "store/postgres/pg_trials.h"

#include <algorithm>
#include <map>
#include <utility>

namespace unflake {
namespace {

// Whoever writes trials shares it, so that nobody forgets a plan between its row and its trial's.
constexpr int64_t plans_lock = 0x756e666c616b6503;  // "unflake", 3

using PlanRows = std::map<std::pair<std::string, std::string>, int64_t>;  // by purpose and plan

// Sorted, so that writers cannot wait for each other in a circle.
PlanRows make_plans(PgConnection& connection, std::span<const RunRecord> trials) {
  PlanRows rows;
  for (const RunRecord& trial : trials) rows[{trial.purpose, trial.plan}] = 0;
  std::vector<std::string> purposes, plans;
  for (const auto& [name, row] : rows) {
    purposes.push_back(name.first);
    plans.push_back(name.second);
  }
  connection.run(
      "INSERT INTO trial_plans (purpose, plan) SELECT * FROM unnest($1::text[], $2::text[])"
      " ON CONFLICT DO NOTHING",
      purposes, plans);
  const PgRows found = connection.run(R"sql(
      SELECT number, known.id
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (purpose, plan, number),
      LATERAL (SELECT id FROM trial_plans AS one WHERE md5(one.purpose) = md5(wanted.purpose)
                 AND md5(one.plan) = md5(wanted.plan) LIMIT 1) AS known)sql",
                                      purposes, plans);
  for (int row = 0; row < found.size(); ++row) {
    const auto number = static_cast<size_t>(found.integer(row, 0) - 1);
    rows[{purposes.at(number), plans.at(number)}] = found.integer(row, 1);
  }
  return rows;
}

}  // namespace

void insert_trials(PgConnection& connection, std::span<const RunRecord> trials,
                   std::vector<RunRow> rows) {
  connection.run("SELECT pg_advisory_xact_lock_shared($1::bigint)", plans_lock);
  const PlanRows plans = make_plans(connection, trials);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].plan = plans.at({trials[i].purpose, trials[i].plan});
  std::ranges::sort(rows, {}, &RunRow::by_test);
  const RunColumns columns(rows);
  connection.run("INSERT INTO trials (" UNFLAKE_RUN_COLUMNS R"sql()
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                           $6::bigint[], $7::bigint[], $8::bigint[])
      ON CONFLICT DO NOTHING)sql",
                 columns.test, columns.started_us, columns.session, columns.attempt,
                 columns.duration_us, columns.outcome, columns.signature, columns.plan);
}

std::vector<RecentRun> recent_trials(PgConnection& connection, int64_t test,
                                     const std::string& purpose, size_t most) {
  const PgRows rows = connection.run(R"sql(
      SELECT trials.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine, purpose, trial_plans.plan
      FROM trials
      LEFT JOIN trial_plans ON trial_plans.id = trials.plan
      LEFT JOIN sessions ON sessions.id = session
      LEFT JOIN signatures ON signatures.id = trials.signature
      WHERE test = $1::bigint AND ($2 = '' OR purpose = $2)
      ORDER BY trials.started_us DESC, session DESC, attempt DESC LIMIT $3::bigint)sql",
                                     test, purpose, most);
  std::vector<RecentRun> trials;
  for (int row = 0; row < rows.size(); ++row)
    trials.push_back({.started = to_time(rows.integer(row, 0)),
                      .outcome = outcome_from_code(rows.integer(row, 1)),
                      .duration = Duration(rows.integer(row, 2)),
                      .attempt = static_cast<int>(rows.integer(row, 3)),
                      .signature = rows.text(row, 4),
                      .commit = rows.text(row, 5),
                      .branch = rows.text(row, 6),
                      .machine = rows.text(row, 7),
                      .purpose = rows.text(row, 8),
                      .plan = rows.text(row, 9)});
  return trials;
}

void forget_unused_plans(PgConnection& connection) {
  PgTransaction transaction(connection);
  connection.run("SELECT pg_advisory_xact_lock($1::bigint)", plans_lock);
  connection.run(
      "DELETE FROM trial_plans WHERE NOT EXISTS"
      " (SELECT FROM trials WHERE trials.plan = trial_plans.id)");
  transaction.commit();
}

}  // namespace unflake
