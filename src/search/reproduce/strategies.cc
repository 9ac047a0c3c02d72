#include <algorithm>
#include <array>
#include <utility>

#include "search/reproduce/candidates.h"
#include "search/reproduce/shrink.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

constexpr std::array all = {
    Strategy{"lateness",
             "one thread late in a test that waits for time: under control, where that takes none",
             search_lateness, true},
    Strategy{"schedules", "one thread at a time, in an order and with a clock that are chosen",
             search_schedules, true},
    Strategy{"more-lateness", "one or two threads late, under control, whatever the test waits for",
             search_more_lateness, true},
    Strategy{"guided", "one delay per run, where a trace shows that it can flip two events",
             search_guided, true},
    Strategy{"more-schedules", "schedules again, until nothing new is seen", search_more_schedules,
             true},
    Strategy{"difference", "orders that failing runs have and passing ones have not, enforced",
             search_difference, true, true},
    Strategy{"pairs", "two delays in different threads, for what needs both", search_pairs, true,
             true},
    Strategy{"functions", "entries and lines of functions that run concurrently (FlakeSync)",
             search_functions, true, true},
    Strategy{"bisection", "all calls late at once, then the halves of what fails (FlakeRake)",
             search_bisection, true, true},
    Strategy{"shake", "no delays, but scarce processors", search_shake, true, true},
    Strategy{"one-by-one", "every call late, one per run (FlakeRake)", search_one_by_one, false},
    Strategy{"ddmin", "all calls late at once, then delta debugging", search_ddmin, false},
    Strategy{"rerun", "plain runs: the rate of failures without any delay", search_rerun, false},
};

// The search has made it as short as it can be.
void take_stall(Found& found) {
  const Duration stall = found.trial.plan.schedule->stall;
  if (stall > Duration::zero()) found.slack = Slack{Duration::zero(), stall};
}

constexpr int runs_to_see_chance = 40;
constexpr Duration longest_look_at_chance = std::chrono::seconds(3);
constexpr int runs_under_control = 5;

bool is_left_to_chance(const Hunt& hunt, const Plan& plan) {
  const ExperimentResult* model = hunt.profile().model();
  return model != nullptr && std::ranges::any_of(plan.interventions, [&](const Intervention& one) {
           return unflake::is_left_to_chance(one, *model->trace);
         });
}

bool is_again(const Hunt& hunt, const Found& found, const ExperimentResult& result) {
  return hunt.goal().is_again(found.trial, found.outcome.signature, result);
}

Count more_free_runs(Hunt& hunt, const Found& found) {
  Count came;
  const Duration until = hunt.runner().elapsed() + longest_look_at_chance;
  while (came.runs < runs_to_see_chance && hunt.runner().elapsed() < until) {
    const auto made = hunt.company().run(found.trial, TrialEnded::Purpose::confirm, found.timeout);
    if (made.empty()) break;
    for (const ExperimentResult& result : made) came.add(is_again(hunt, found, result));
  }
  return came;
}

Count controlled_runs(Hunt& hunt, const Found& found) {
  Count came;
  if (!hunt.foresight().is_possible(hunt.base_plan())) return came;
  for (int i = 0; i < runs_under_control; ++i) {
    const auto seen = hunt.foresight().of(found.trial, TrialEnded::Purpose::confirm);
    came.add(seen && is_again(hunt, found, seen->result));
  }
  return came;
}

// Something else has shown that it has its say.
bool is_unsteady(const Hunt& hunt, const Found& found) {
  return hunt.profile().failures() > 0 || found.without_plan.hits > 0 ||
         found.with_plan.misses() > 0;
}

// Five runs in a row do not tell a plan that always works from one that works nine times of ten.
void leave_nothing_to_chance(Hunt& hunt, Found& found, bool was_unsteady) {
  if (hunt.goal().is_inverted()) return;
  if (found.with_plan.misses() == 0 && (was_unsteady || is_left_to_chance(hunt, found.trial.plan)))
    found.with_plan += more_free_runs(hunt, found);
  if (found.with_plan.misses() == 0) return;
  const Count controlled = controlled_runs(hunt, found);
  if (controlled.runs > 0 && controlled.misses() == 0) found.under_control = controlled;
}

void refine(Hunt& hunt, Found& found, Duration time) {
  hunt.runner().teller().begin(
      "slack",
      "leaving out what the failure does not need, then the smallest delay that is enough");
  const Duration now = hunt.runner().elapsed(), ends = now + time;
  if (found.trial.plan.schedule) return take_stall(found);
  const bool was_unsteady = is_unsteady(hunt, found);
  // Orders were made few where every run can be repeated; five runs in a row would prove less.
  if (longest_delay(found.trial.plan) > Duration::zero())
    shrink(hunt, found, now + (ends - now) / 2);
  measure_slack(hunt, found, ends);
  leave_nothing_to_chance(hunt, found, was_unsteady);
}

}  // namespace

std::span<const Strategy> strategies() {
  return all;
}

const Strategy* find_strategy(std::string_view name) {
  const auto found = std::ranges::find(all, name, &Strategy::name);
  return found == all.end() ? nullptr : &*found;
}

void search(Hunt& hunt, std::span<const Strategy* const> chosen,
            const std::function<void()>& on_confirmed) {
  // A wider strategy is for what a narrower one does not find, and a margin is not one.
  for (const Strategy* strategy : chosen) {
    if (hunt.findings().is_enough() || is_proven_sound(hunt)) break;
    if (strategy->is_last_resort && is_covered_under_control(hunt)) {
      hunt.coverage().not_needed.emplace_back(strategy->name);
      continue;
    }
    const int runs_before = hunt.runner().runs();
    const int too_long_before = hunt.coverage().unaffordable;
    hunt.runner().teller().begin(std::string(strategy->name), std::string(strategy->about));
    if (!hunt.over()) strategy->search(hunt);
    const bool lacked_time = hunt.out_of_budget() || hunt.coverage().unaffordable > too_long_before;
    if (hunt.runner().runs() == runs_before && lacked_time)
      hunt.coverage().left_out.emplace_back(strategy->name);
    if (on_confirmed && !hunt.found().empty()) on_confirmed();
    refine(hunt);
  }
}

void refine(Hunt& hunt) {
  auto left = std::ranges::count(hunt.found(), false, &Found::is_refined);
  for (Found& found : hunt.found()) {
    if (std::exchange(found.is_refined, true)) continue;
    if (!hunt.runner().has_ended()) refine(hunt, found, hunt.runner().left() / left--);
    hunt.findings().learn_machine_lateness(found, hunt.runner().left());
    hunt.findings().judge(found);
  }
}

}  // namespace unflake
