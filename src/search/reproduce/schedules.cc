#include <fmt/format.h>

#include <algorithm>

#include "search/reproduce/strategy.h"
#include "search/schedule/explore.h"
#include "search/schedule/free_run.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

// Delays find in a few runs what only lateness can cause, so that they are not kept waiting.
constexpr int share_of_first_search = 6;
constexpr Duration longest_first_search = 5s, least_first_search = 200ms;
constexpr uint64_t most_for_reduction = 300;  // runs; a sentence is not worth seconds
constexpr size_t most_late_visits = 4;        // that are tried as delays
constexpr Duration longest_look_at_orders = 1s;

ExploreOptions options_for(const Hunt& hunt) {
  ExploreOptions options;
  options.plan = hunt.base_plan();
  options.seed = hunt.options().seed;
  options.rates = false;
  options.pairs_are_enough = hunt.goal().wanted().anything();
  options.most_for_reduction = most_for_reduction;
  options.limits.timeout = hunt.times().until_it_hangs();
  options.limits.at_once = 1;  // nobody knows yet whether the test bears company
  return options;
}

void count(Coverage& coverage, const ExploreReport& report) {
  if (report.answer != ExploreReport::Answer::not_controlled)
    coverage.search_runs +=
        static_cast<int>(report.found ? report.found->after_schedules : report.schedules);
  for (const auto& [headline, runs] : report.other_failures)
    coverage.other_failures[headline] += runs;
  coverage.schedules = report;
}

std::string reason_of(const ExploreReport::Found& found) {
  const std::vector<std::string>& said = found.deadlock.empty() ? found.sentences : found.deadlock;
  std::string text;
  for (const std::string& sentence : said) text += (text.empty() ? "" : "; ") + sentence;
  return text.empty() ? "under a schedule of its threads" : text;
}

bool try_and_confirm(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  return seen && seen->hit && hunt.confirm(trial, *seen);
}

// What orders leave to chance shows now and then only, and such runs take milliseconds.
bool always_comes(Hunt& hunt, Trial trial) {
  trial.is_one_of_many = true;
  const Duration until = hunt.runner().elapsed() + longest_look_at_orders;
  const Duration timeout = hunt.times().limit_for(trial);
  for (int i = 0; i < hunt.options().runs_under_orders && hunt.runner().elapsed() < until; ++i) {
    const auto made =
        hunt.runner().run(trial, TrialEnded::Purpose::confirm, {timeout, hunt.runner().left()});
    if (!made || !made->hit || !made->fired) return false;
  }
  return true;
}

// On free cores, threads wait for each other where the order of what they do decides. A schedule
// says more than an order that does not always give the failure.
bool keep_orders(Hunt& hunt, const Trial& plain, const ExploreReport::Found& found) {
  if (found.enough.empty()) return false;
  Trial ordered = plain;
  ordered.plan.interventions = as_interventions(found.enough, *found.trace);
  return !ordered.plan.interventions.empty() && always_comes(hunt, ordered) &&
         try_and_confirm(hunt, ordered) && hunt.findings().has_reliable();
}

// What is more than enough under control may be little on free cores, where others are late too.
Duration generous(Duration late) {
  return std::chrono::ceil<std::chrono::milliseconds>(2 * late + 20ms);
}

bool keep_delays(Hunt& hunt, const Trial& plain, const std::vector<LateVisit>& late) {
  Trial delayed = plain;
  delayed.why.clear();
  for (const LateVisit& visit : late) {
    delayed.plan.interventions.push_back(visit.delay);
    delayed.plan.interventions.back().duration = generous(visit.delay.duration);
    delayed.why += (delayed.why.empty() ? "" : "; ") + visit.why;
  }
  if (!try_and_confirm(hunt, delayed) || !hunt.findings().has_reliable()) return false;
  for (Found& found : hunt.found())
    if (text_of(found.trial) == text_of(delayed)) found.likely_slack = late.front().delay.duration;
  return true;
}

// Where a schedule has made a thread late, a delay does so on free cores: each alone, then
// together.
bool keep_lateness(Hunt& hunt, const Trial& plain, const ExploreReport& report) {
  const ExploreReport::Found& found = *report.found;
  if (found.stall == Duration::zero()) return false;
  std::vector<LateVisit> late = late_visits(*found.trace, *report.undisturbed);
  std::erase_if(late, [latest = late.empty() ? 0us : late.front().delay.duration](
                          const LateVisit& one) { return one.delay.duration < latest / 2; });
  if (late.size() > most_late_visits) late.resize(most_late_visits);
  for (const LateVisit& one : late)
    if (keep_delays(hunt, plain, {one})) return true;
  return late.size() > 1 && keep_delays(hunt, plain, late);
}

void search(Hunt& hunt, const ExploreOptions& options) {
  const auto report = explore(hunt.runner(), options);
  if (!report) return;
  count(hunt.coverage(), *report);
  if (!report->found || report->found->came_back == 0) return;
  hunt.take_sign();
  const Trial plain{hunt.base_plan(), {}, reason_of(*report->found)};
  // Where time matters a delay says more, as it has a length.
  if (keep_lateness(hunt, plain, *report) || keep_orders(hunt, plain, *report->found)) return;
  Trial controlled = plain;
  controlled.plan.schedule = report->found->schedule;
  try_and_confirm(hunt, controlled);
}

}  // namespace

void search_schedules(Hunt& hunt) {
  if (hunt.goal().is_inverted()) return;  // a schedule that lets the test pass names no pair
  ExploreOptions options = options_for(hunt);
  options.limits.budget = std::clamp<Duration>(
      hunt.time_to_search() / share_of_first_search,
      std::min<Duration>(hunt.time_to_search(), least_first_search), longest_first_search);
  search(hunt, options);
}

// What the first search has shown decides whether there is anything left to see.
void search_more_schedules(Hunt& hunt) {
  const auto& first = hunt.coverage().schedules;
  if (hunt.goal().is_inverted() || (first && first->answer != ExploreReport::Answer::budget_over))
    return;
  ExploreOptions options = options_for(hunt);
  options.seed += first ? 1 : 0;
  options.exhaustive = !first;
  options.limits.budget = hunt.time_to_search() * 3 / 4;
  search(hunt, options);
}

bool is_proven_sound(const Hunt& hunt) {
  const auto& explored = hunt.coverage().schedules;
  return explored && explored->answer == ExploreReport::Answer::passes_in_all &&
         explored->looked_for_accesses && explored->longest_stall == Duration::zero() &&
         explored->not_repeatable.empty();
}

}  // namespace unflake
