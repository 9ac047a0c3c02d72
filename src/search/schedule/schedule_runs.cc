#include "search/schedule/schedule_runs.h"

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

constexpr Duration longest_look = std::chrono::minutes(1);  // at every instruction

// The test ran, but not under control: what the agent said about it.
std::string reason_against_control(const Trace* trace) {
  if (trace == nullptr) return "the agent could not be loaded into it";
  for (const TracedProcess& process : trace->processes)
    if (!process.degraded.empty()) return join(process.degraded, "; ");
  if (!trace->problems.empty()) return trace->problems.front();
  return "the agent did not take control of its threads";
}

// Nothing was decided, and there is a reason.
std::string reason_for_refusal(const ControlledRun& run) {
  return run.points_in_all == 0 && run.digest == 0 ? run.not_repeatable : "";
}

// Interventions refer to each other by their numbers.
void add(Plan& plan, const std::vector<Intervention>& interventions) {
  const size_t before = plan.interventions.size();
  for (Intervention one : interventions) {
    for (auto* reference : {&one.anchor, &one.until})
      if (*reference) **reference += before;
    plan.interventions.push_back(std::move(one));
  }
}

}  // namespace

std::string ScheduleRun::failure_id() const {
  if (controlled().deadlock.empty()) return result.outcome.signature;
  std::vector<std::string> places;
  for (const DeadlockedThread& stuck : controlled().deadlock)
    if (stuck.site < trace().sites.size())
      places.push_back(to_string(trace().sites[stuck.site].name));
  std::ranges::sort(places);
  return "deadlock " + join(places, ", ");
}

Trial ScheduleRuns::trial(const Schedule& schedule) const {
  Trial trial{plan_, {}, std::string(to_string(schedule.sampler))};
  trial.plan.schedule = schedule;
  return trial;
}

std::optional<ScheduleRun> ScheduleRuns::judged(const Schedule& schedule, const Observation& seen) {
  const ExperimentResult& result = seen.result;
  if (!has_started(result)) {
    why_not_ = result.process.error.empty() ? "it could not be started" : result.process.error;
    return std::nullopt;
  }
  // What the budget cut short has shown nothing.
  const bool ran_out = result.process.end == ProcessResult::End::timed_out;
  if (ran_out && left() <= Duration{}) return std::nullopt;
  ++count_;
  if (!result.trace || !result.trace->controlled) {
    why_not_ = reason_against_control(result.trace.get());
    return std::nullopt;
  }
  why_not_ = reason_for_refusal(*result.trace->controlled);
  if (!why_not_.empty()) return std::nullopt;
  if (not_repeatable_.empty()) not_repeatable_ = result.trace->controlled->not_repeatable;
  return ScheduleRun{schedule, result, seen.hit};
}

std::optional<ScheduleRun> ScheduleRuns::run(const Schedule& schedule, Purpose purpose,
                                             const std::vector<Intervention>& interventions) {
  if (is_over()) return std::nullopt;
  const Duration timeout =
      schedule.find_accesses ? std::max(limits_.timeout, longest_look) : limits_.timeout;
  Trial made = trial(schedule);
  add(made.plan, interventions);
  const auto seen = runner_.run(made, purpose, {timeout, left()});
  return seen ? judged(schedule, *seen) : std::nullopt;
}

void ScheduleRuns::run_each(const Next& next, const Take& take) {
  bool goes_on = true;
  const Duration timeout =
      std::clamp(left(), Duration{std::chrono::milliseconds(1)}, limits_.timeout);
  runner_.run_each(
      Purpose::candidate, timeout, limits_.at_once,
      [&]() -> std::optional<Trial> {
        const auto schedule = goes_on && !is_over() ? next() : std::nullopt;
        return schedule ? std::optional(trial(*schedule)) : std::nullopt;
      },
      [&](const Trial& made, const Observation& seen) {
        const auto run = judged(*made.plan.schedule, seen);
        if (run && goes_on) goes_on = take(*run);
      });
}

}  // namespace unflake
