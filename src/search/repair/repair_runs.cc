#include "search/repair/repair_runs.h"

#include <algorithm>
#include <map>

namespace unflake {
namespace {

constexpr int most_tries_to_record = 10;
constexpr int most_refusals = 20;

}  // namespace

RepairRuns::Run RepairRuns::run(const Trial& trial, Purpose purpose) {
  if (is_over()) return {};
  auto seen = runner_.run(trial, purpose, {test_.timeout, runner_.left()});
  if (!seen) return {};
  Run run{End::otherwise, std::move(seen->result)};
  const Outcome& outcome = run.result.outcome;
  if (!has_started(run.result))
    run.end = End::refused;
  else if (outcome.kind == OutcomeKind::pass)
    run.end = End::passed;
  else if (test_.is_same(outcome))
    run.end = End::failed;
  return run;
}

RepairRuns::End RepairRuns::most_of(const Trial& trial) {
  const Run first = run(trial);
  if (!test_.is_noisy() || first.end == End::over || first.end == End::refused) return first.end;
  const Run second = run(trial);
  if (second.end == first.end || second.end == End::over) return second.end;
  return run(trial).end;
}

std::optional<ExperimentResult> RepairRuns::record(Trial trial, RepairLines* lines, End wanted) {
  trial.plan.agent = trial.plan.calls = trial.plan.stacks = true;
  trial.plan.functions = lines == nullptr;
  int refusals = 0;
  for (int i = 0; i < most_tries_to_record && !is_over(); ++i) {
    Trial watched = trial;
    if (lines != nullptr) lines->watch_in(watched.plan);
    Run seen = run(watched, Purpose::look);
    if (seen.end == wanted && seen.result.trace) return std::move(seen.result);
    if (seen.end != End::refused) continue;
    if (lines == nullptr || ++refusals > most_refusals) return std::nullopt;
    if (!lines->leave_out(seen.result.process.error)) return std::nullopt;
    --i;
  }
  return std::nullopt;
}

HoldsSeen holds_in(const Plan& plan, size_t from, const ExperimentResult& result) {
  HoldsSeen seen;
  if (!result.trace) return seen;
  for (size_t i = from; i < plan.interventions.size() && i < result.trace->interventions.size();
       ++i) {
    if (plan.interventions[i].action != Intervention::Action::hold) continue;
    const TracedIntervention& state = result.trace->interventions[i];
    seen.fired += state.fired;
    seen.let_go += state.let_go;
    seen.impossible += state.impossible;
    seen.waited += state.added;
  }
  return seen;
}

}  // namespace unflake
