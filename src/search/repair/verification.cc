#include "search/repair/verification.h"

#include <fmt/format.h>

#include "search/balance/balance_runs.h"
#include "search/schedule/portfolio.h"
#include "search/schedule/schedule_runs.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using End = RepairRuns::End;

constexpr Duration lateness_in_schedules = 100ms;
constexpr int least_share = 4;     // of the schedules, where time is short
constexpr Duration no_wait = 1ms;  // the probe itself takes some time
constexpr double slower_by = 1.2;  // times the median
constexpr double slower_by_ms = 10;

// By more than what runs differ anyway.
bool is_slower(const Spread& with, const Spread& without) {
  return with.count > 0 && without.count > 0 && with.lower_quartile > without.upper_quartile &&
         with.median > slower_by * without.median + slower_by_ms;
}

std::string failure_words(const ExperimentResult& result) {
  if (result.trace && !deadlock_of(*result.trace).empty()) return deadlock_text(*result.trace);
  return headline_of(result.outcome);
}

}  // namespace

std::string Verification::objection_to(const RepairRuns::Run& run, const Plan& plan, size_t own) {
  const HoldsSeen holds = holds_in(plan, own, run.result);
  switch (run.end) {
    case End::refused:
      return "it cannot be enforced: " + run.result.process.error;
    case End::failed:
      if (holds.impossible > 0) return "nobody is left who could come first there";
      if (holds.let_go > 0) return "what it waits for does not come in time";
      return holds.fired == 0 ? "it still fails: nobody came to the barrier first"
                              : "it still fails";
    case End::otherwise:
      return "it fails in another way: " + failure_words(run.result);
    case End::passed:
      if (holds.let_go > 0) return "it waits for what does not come in every run";
      if (holds.impossible > 0) return "nobody is left who could come first there";
      return "";
    case End::over:
      return "";
  }
  return "";
}

std::string Verification::quick_objection(const std::vector<HandOverPoints>& order, int tries) {
  Trial trial = runs_.test().failing;
  const size_t own = trial.plan.interventions.size();
  trial.plan = with_order(trial.plan, order, limits_.bound);
  trial.plan.agent = true;
  trial.why = "with the order";
  uint64_t waits = 0;
  for (int i = 0; i < tries; ++i) {
    const RepairRuns::Run run = runs_.run(trial);
    if (!run.ended()) return "";
    if (std::string why = objection_to(run, trial.plan, own); !why.empty()) return why;
    waits += holds_in(trial.plan, own, run.result).fired;
  }
  return waits == 0 ? "nobody came to the barrier" : "";
}

// False: there is an objection, or the search is over.
bool Verification::make(const Trial& trial, size_t own, int runs, Count& failures,
                        Verdict& verdict) {
  for (int i = 0; i < runs; ++i) {
    const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::confirm);
    if (!run.ended()) return false;
    failures.add(run.end == End::failed);
    const HoldsSeen holds = holds_in(trial.plan, own, run.result);
    verdict.runs.waits += holds.waited > no_wait;
    verdict.runs.longest_wait = std::max(verdict.runs.longest_wait, holds.waited);
    verdict.objection = objection_to(run, trial.plan, own);
    if (!verdict.objection.empty()) return false;
  }
  return true;
}

void Verification::run_under_plan(const std::vector<HandOverPoints>& order, Verdict& verdict) {
  Trial trial = runs_.test().failing;
  const size_t own = trial.plan.interventions.size();
  trial.plan = with_order(trial.plan, order, limits_.bound);
  trial.plan.agent = true;
  trial.why = "made late, with the order";
  if (!make(trial, own, limits_.runs_under_plan, verdict.runs.under_plan, verdict)) return;
  run_late_after(order, verdict);
}

// Being late after the critical point must not matter, or it is not all that is critical.
void Verification::run_late_after(const std::vector<HandOverPoints>& order, Verdict& verdict) {
  for (const HandOverPoints& points : order) {
    const CriticalPoint& critical = points.critical;
    if (!critical.next || critical.when_reached || critical.late.duration == Duration{}) continue;
    Trial trial = runs_.test().failing;
    trial.plan.interventions = {late_before(critical.late, *critical.next)};
    trial.plan = with_order(trial.plan, order, limits_.bound);
    trial.plan.agent = true;
    trial.why = "late after the critical point, with the order";
    if (make(trial, 1, limits_.runs_late_after, verdict.runs.late_after, verdict)) continue;
    if (!verdict.objection.empty())
      verdict.objection += ", with the thread late after the critical point";
    return;
  }
}

void Verification::run_plain(const std::vector<HandOverPoints>& order, Verdict& verdict) {
  const FailingTest& test = runs_.test();
  Trial without = test.passing.plan.interventions.empty() ? test.passing : test.failing;
  without.plan.agent = true;
  without.why = "as it is";
  Trial with = without;
  with.plan = with_order(with.plan, order, limits_.bound);
  with.why = "nobody late, with the order";
  std::vector<double> times_with, times_without;
  for (int i = 0; i < limits_.plain_runs; ++i) {
    const RepairRuns::Run one = runs_.run(without, RepairRuns::Purpose::baseline);
    if (one.end == End::passed) times_without.push_back(to_ms(one.result.outcome.duration));
    const RepairRuns::Run other = runs_.run(with, RepairRuns::Purpose::confirm);
    if (!other.ended()) return;
    verdict.runs.plain.add(other.end == End::failed);
    verdict.runs.waits += holds_in(with.plan, 0, other.result).waited > no_wait;
    verdict.objection = objection_to(other, with.plan, 0);
    if (!verdict.objection.empty()) return;
    times_with.push_back(to_ms(other.result.outcome.duration));
  }
  verdict.runs.time_with = spread_of(times_with);
  verdict.runs.time_without = spread_of(times_without);
  if (is_slower(verdict.runs.time_with, verdict.runs.time_without))
    verdict.objection =
        fmt::format("it makes the test slower: {:.0f} ms instead of {:.0f} ms",
                    verdict.runs.time_with.median, verdict.runs.time_without.median);
}

void Verification::run_schedules(const std::vector<HandOverPoints>& order, Verdict& verdict) {
  Plan plan = runs_.test().passing.plan;
  plan.interventions.clear();
  const Plan without = plan;
  plan = with_order(plan, order, limits_.bound);
  const ScheduleLimits part{runs_.runner().left() / 2, runs_.test().timeout};
  ScheduleRuns schedules(runs_.runner(), plan, part);
  const auto first = schedules.run(Schedule{});
  if (!first) {
    verdict.runs.why_no_schedules = schedules.why_not_controlled();
    return;
  }
  // What fails as well without the order is not its fault.
  ScheduleRuns bare(runs_.runner(), without, part);
  const auto is_new = [&](const ScheduleRun& run) {
    const auto again = bare.run(run.schedule);
    return !again || again->failure_id() != run.failure_id();
  };
  const auto take = [&](const ScheduleRun& run) {
    const bool is_same = run.failed() && runs_.test().is_same(run.result.outcome);
    verdict.runs.schedules.add(is_same);
    verdict.is_partial = is_same;
    if (is_same)
      verdict.objection = "it still fails under a schedule: " + to_string(run.schedule);
    else if (run.failed() && is_new(run))
      verdict.objection = "under a schedule it fails in another way: " + failure_words(run.result);
    return verdict.objection.empty();
  };
  for (const Duration stall : {Duration{}, lateness_in_schedules}) {
    Portfolio portfolio(profile_of(first->trace()), {{}, stall}, {}, limits_.seed);
    for (int i = 0; i < limits_.schedules / 2 && verdict.objection.empty(); ++i) {
      const auto run = schedules.run(portfolio.next(), RepairRuns::Purpose::confirm);
      if (!run) break;
      take(*run);
    }
  }
  verdict.runs.why_no_schedules = schedules.why_not_controlled();
}

Verification::Verdict Verification::operator()(const std::vector<HandOverPoints>& order) {
  Verdict verdict;
  run_under_plan(order, verdict);
  if (verdict.objection.empty() && !runs_.is_over()) run_plain(order, verdict);
  if (verdict.objection.empty() && !runs_.is_over()) run_schedules(order, verdict);
  const bool has_schedules = !verdict.runs.why_no_schedules.empty() ||
                             verdict.runs.schedules.runs >= limits_.schedules / least_share;
  verdict.is_complete = verdict.runs.under_plan.runs == limits_.runs_under_plan &&
                        verdict.runs.plain.runs == limits_.plain_runs && has_schedules;
  return verdict;
}

}  // namespace unflake
