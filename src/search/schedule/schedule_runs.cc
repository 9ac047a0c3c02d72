#include "search/schedule/schedule_runs.h"

#include <algorithm>
#include <map>

#include "util/text.h"

namespace unflake {
namespace {

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

Experiment ScheduleRuns::experiment(const Schedule& schedule) const {
  Experiment experiment;
  experiment.tests = test_;
  experiment.plan = plan_;
  experiment.plan.agent = true;
  experiment.plan.schedule = schedule;
  experiment.fork_server = true;
  experiment.timeout = std::clamp(left(), Duration{std::chrono::milliseconds(1)}, limits_.timeout);
  return experiment;
}

std::optional<ScheduleRun> ScheduleRuns::judged(const Schedule& schedule, ExperimentResult result) {
  if (result.process.end == ProcessResult::End::cancelled) {
    stopped_ = true;
    return std::nullopt;
  }
  if (result.process.end == ProcessResult::End::not_started) {
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
  longest_ = std::max(longest_, result.process.duration);
  return ScheduleRun{schedule, std::move(result)};
}

std::optional<ScheduleRun> ScheduleRuns::run(const Schedule& schedule) {
  if (is_over()) return std::nullopt;
  auto result = executor_.run(experiment(schedule));
  if (!result) {
    error_ = result.error();
    return std::nullopt;
  }
  return judged(schedule, std::move(*result));
}

void ScheduleRuns::run_each(const Next& next, const Take& take) {
  std::map<Ticket, Schedule> running;
  bool goes_on = true;
  const auto fill = [&] {
    while (goes_on && !is_over() && executor_.free_slots() > 0) {
      const auto schedule = next();
      if (!schedule) return;
      running[executor_.start(experiment(*schedule))] = *schedule;
    }
  };
  for (fill(); !running.empty(); fill()) {
    Wakeup wakeup = executor_.wait();
    if (const auto* broken = std::get_if<Broken>(&wakeup)) {
      error_ = broken->error;
      return;
    }
    if (std::holds_alternative<Stopped>(wakeup)) {
      stopped_ = true;
      executor_.cancel_all();
    }
    auto* finished = std::get_if<Finished>(&wakeup);
    if (finished == nullptr) continue;
    auto entry = running.extract(finished->ticket);
    if (entry.empty()) continue;
    const auto run = judged(entry.mapped(), std::move(finished->result));
    if (run && goes_on) goes_on = take(*run);
  }
}

}  // namespace unflake
