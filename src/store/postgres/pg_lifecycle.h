#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// The small tables: what people and commands did about flaky tests, and where targets are.

void note_step(PgConnection& connection, int64_t test, const LifecycleStep& step);
std::vector<LifecycleStep> read_lifecycle(PgConnection& connection, int64_t project,
                                          const Window& window);

std::vector<CauseRecord> read_causes(PgConnection& connection, int64_t project);
int64_t save_cause(PgConnection& connection, int64_t project, const CauseRecord& cause);

void remember_target(PgConnection& connection, int64_t project, const TargetRecord& target);
std::optional<TargetRecord> find_target(PgConnection& connection, int64_t project,
                                        const std::string& name);

// Inside a transaction. The rows are of the trials, in their order, and lack only their plans.
void insert_trials(PgConnection& connection, std::span<const RunRecord> trials,
                   std::vector<RunRow> rows);

// Of rows that begin with: start, outcome, duration, attempt, signature, commit, branch, machine.
std::vector<RecentRun> recent_runs_in(const PgRows& rows);

// Newest first.
std::vector<RecentRun> recent_trials(PgConnection& connection, int64_t test,
                                     const std::string& purpose, size_t most);

// Deletes plans that no trial is of.
void forget_unused_plans(PgConnection& connection);

}  // namespace unflake
