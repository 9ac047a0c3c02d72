#include "search/repair/repair_runs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "search/reproduce/candidates.h"

namespace unflake {
namespace {

constexpr int most_tries_to_record = 10;
constexpr int runs_to_believe = 3;  // that all fail
constexpr int runs_to_compare = 2;
constexpr int runs_to_know_noise = 6;
constexpr int sure_when_quiet = 3, sure_when_noisy = 8, sure_when_loud = 16;

Intervention watch_of(const SiteName& line) {
  Intervention watch;
  watch.action = Intervention::Action::watch;
  watch.site = line;
  return watch;
}

// To its end.
bool was_controlled(const ExperimentResult& result) {
  return result.trace && result.trace->controlled &&
         result.trace->controlled->not_repeatable.empty();
}

}  // namespace

bool RepairRuns::may_be_controlled(const Trial& trial, Purpose purpose) const {
  const bool is_told = purpose == Purpose::confirm || purpose == Purpose::baseline;
  return !is_told && !trial.plan.schedule && trial.conditions == Conditions{};
}

bool RepairRuns::go_under_control() {
  if (is_under_control_) return true;
  if (!test_.passing.plan.interventions.empty()) return false;
  for (const Trial* trial : {&test_.passing, &test_.failing})
    if (!may_be_controlled(*trial, Purpose::look)) return false;
  is_under_control_ =
      is_repeatable(test_.passing, End::passed) && is_repeatable(test_.failing, End::failed);
  return is_under_control_;
}

bool RepairRuns::is_repeatable(const Trial& trial, End wanted) {
  Trial controlled = trial;
  controlled.plan.agent = true;
  controlled.plan.schedule = Schedule{};
  controlled.why = trial.why + ", under control";
  std::optional<uint64_t> digest;
  for (int i = 0; i < runs_to_compare; ++i) {
    const Run seen = make(controlled, Purpose::look);
    if (seen.end != wanted || !was_controlled(seen.result)) return false;
    const uint64_t own = seen.result.trace->controlled->digest;
    if (digest && digest != own) return false;
    digest = own;
  }
  return true;
}

RepairRuns::Run RepairRuns::run(const Trial& trial, Purpose purpose) {
  if (is_under_control_ && may_be_controlled(trial, purpose)) {
    Trial controlled = trial;
    controlled.plan.agent = true;
    controlled.plan.schedule = Schedule{};
    Run seen = make(controlled, purpose);
    if (!seen.ended() || seen.end == End::refused || was_controlled(seen.result)) return seen;
    is_under_control_ = false;
  }
  return make(trial, purpose);
}

RepairRuns::Run RepairRuns::make(const Trial& trial, Purpose purpose) {
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
  if (!test_.is_noisy() || is_under_control_ || first.end == End::over || first.end == End::refused)
    return first.end;
  const Run second = run(trial);
  if (second.end == first.end || second.end == End::over) return second.end;
  return run(trial).end;
}

bool RepairRuns::fails_every_time(const Trial& trial) {
  int failed = 0;
  while (failed < runs_to_believe && run(trial).end == End::failed) ++failed;
  return failed == runs_to_believe;
}

int RepairRuns::to_be_sure() {
  if (is_under_control_) return 1;
  if (to_be_sure_ > 0) return to_be_sure_;
  int failed = 0;
  for (int i = 0; i < runs_to_know_noise && !is_over(); ++i)
    failed += run(test_.passing, Purpose::baseline).end == End::failed;
  return to_be_sure_ = failed == 0                       ? sure_when_quiet
                       : 2 * failed < runs_to_know_noise ? sure_when_noisy
                                                         : sure_when_loud;
}

std::optional<ExperimentResult> RepairRuns::record(Trial trial, RepairLines* lines, End wanted) {
  trial.plan.agent = trial.plan.calls = trial.plan.stacks = true;
  trial.plan.functions = lines == nullptr;
  for (int i = 0; i < most_tries_to_record && !is_over(); ++i) {
    Trial watched = trial;
    if (lines != nullptr) lines->watch_in(watched.plan);
    if (test_.printed_at) watched.plan.interventions.push_back(watch_of(*test_.printed_at));
    Run seen = run(watched, Purpose::look);
    if (seen.end == wanted && seen.result.trace) {
      add_printed_failure(seen.result);
      return std::move(seen.result);
    }
    if (seen.end != End::refused) continue;
    // Optimized code has many lines that are one instruction: each refusal leaves one of them out.
    const bool is_left_out = lines != nullptr && lines->leave_out(seen.result.process.error);
    if (!is_left_out && !std::exchange(test_.printed_at, std::nullopt)) return std::nullopt;
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

namespace {

constexpr Duration short_enough = std::chrono::milliseconds(200);
constexpr int shorter_by = 4;

// The threads that are held, late at the same places instead. One of them is often enough, and says
// more: two that are equally late may meet again.
std::vector<Plan> as_delays(const Plan& plan, Duration late) {
  Plan all = plan;
  all.interventions.clear();
  std::vector<Intervention> delays;
  for (Intervention one : plan.interventions) {
    if (one.action == Action::watch) continue;
    const bool is_hold = one.action == Action::hold;
    one.until.reset();
    one.anchor.reset();
    one.count = 1;
    if (is_hold) {
      one.action = Action::delay;
      one.duration = late;
      delays.push_back(one);
    }
    all.interventions.push_back(std::move(one));
  }
  std::vector<Plan> plans;
  for (size_t i = 0; i < delays.size() && delays.size() > 1; ++i) {
    plans.push_back(plan);
    plans.back().interventions = {delays[i]};
  }
  plans.push_back(std::move(all));
  return plans;
}

}  // namespace

bool has_holds(const Plan& plan) {
  return std::ranges::any_of(plan.interventions,
                             [](const Intervention& one) { return one.action == Action::hold; });
}

// An order that makes the test fail would fight with one that repairs it; lateness does not.
void RecordedRuns::replace_order(RepairReport& report) {
  if (!has_holds(runs_.test().failing.plan)) return;
  for (const Duration late : {100ms, 500ms})
    for (Plan& delays : as_delays(runs_.test().failing.plan, late)) {
      Trial trial = runs_.test().failing;
      trial.plan = std::move(delays);
      trial.why = "late by " + format_duration(late) + " instead of held";
      if (!runs_.fails_every_time(trial)) continue;
      runs_.test().failing = trial;
      return;
    }
  report.notes.push_back(
      "the failure takes an order of threads that no delay gives: the repair was tried against "
      "that order, which then cannot be kept");
}

// Hundreds of runs follow, each as late as this.
void RecordedRuns::shorten_delays() {
  while (longest_delay(runs_.test().failing.plan) > short_enough && !runs_.is_over()) {
    Trial trial = runs_.test().failing;
    trial.plan = with_longest_delay(trial.plan, longest_delay(trial.plan) / shorter_by);
    trial.why = "less late";
    if (!runs_.fails_every_time(trial)) return;
    runs_.test().failing = trial;
  }
}

bool RecordedRuns::operator()(RepairReport& report) {
  replace_order(report);
  shorten_delays();
  auto failing = runs_.record(runs_.test().failing, nullptr, End::failed);
  if (!failing) return missing("fail as recorded under the plan", report);
  report.deadlock = lock_cycle(*failing->trace);
  auto passing = runs_.record(runs_.test().passing, nullptr, End::passed);
  if (!passing) return missing("pass without the plan", report);
  if (compare_) named_barriers_ = compare_(*passing, *failing);
  lines_.emplace(std::vector<const Trace*>{failing->trace.get(), passing->trace.get()},
                 runs_.test().lines);
  runs_.say(fmt::format("{} lines of the project's code may matter", lines_->size()));
  failing_ = runs_.record(runs_.test().failing, &*lines_, End::failed);
  passing_ = runs_.record(runs_.test().passing, &*lines_, End::passed);
  if (failing_ && passing_) return true;
  report.notes.push_back("with lines watched the test ends differently: calls alone were tried");
  lines_.emplace(std::vector<const Trace*>{}, runs_.test().lines);
  failing_ = std::move(failing);
  passing_ = std::move(passing);
  return true;
}

bool RecordedRuns::missing(const std::string& what, RepairReport& report) {
  if (!runs_.is_over())
    report.notes.push_back("the test did not " + what + " in any run with its calls recorded");
  return false;
}

std::string lock_cycle(const Trace& trace) {
  const auto& stuck = deadlock_of(trace);
  for (const DeadlockedThread& start : stuck) {
    std::set<ThreadNumber> met;
    for (auto at = std::ranges::find(stuck, start.thread, &DeadlockedThread::thread);
         at != stuck.end() && at->held_by;
         at = std::ranges::find(stuck, *at->held_by, &DeadlockedThread::thread))
      if (!met.insert(at->thread).second) return deadlock_text(trace);
  }
  return "";
}

}  // namespace unflake
