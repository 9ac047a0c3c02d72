#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "search/reproduce/candidates.h"
#include "search/reproduce/shrink.h"
#include "search/reproduce/strategy.h"
#include "search/schedule/portfolio.h"
#include "trace/happens_before.h"

namespace unflake {
namespace {

constexpr uint64_t most_visits_of_rare = 10;  // that are all made late by as much

std::string key_of(const Intervention& delay) {
  return to_string(delay) + delay.executable;
}

// A time-out that nobody had to wait for leaves no trace: what seemed long enough may not be.
void add_longer(std::vector<Candidate>& candidates, const DelayLimits& limits) {
  const size_t all = candidates.size();
  for (size_t i = 0; i < all; ++i) {
    if (candidates[i].single_visit || candidates[i].flips == Candidate::Flips::nothing) continue;
    Candidate longer = candidates[i];
    longer.delay.duration = std::min(longer.delay.duration * 4, limits.most);
    longer.why += ", longer";
    candidates.push_back(std::move(longer));
  }
}

// Places of threads, and how many of a class have shown the same one.
class KnownPlaces {
 public:
  // Whether it is new, and not the same as that of many others.
  bool add(const SiteName& site, const ThreadName& thread) {
    const std::string name = to_string(site) + "@";
    return seen_.insert(name + thread.text).second &&
           ++alike_[name + thread_class_of(thread.text)] <= most_representatives;
  }

 private:
  std::set<std::string> seen_;
  std::map<std::string, size_t> alike_;
};

// The model run first, then what only other runs have shown.
std::vector<Candidate> all_candidates(const Hunt& hunt, const FailurePoint& failure) {
  const DelayLimits& limits = hunt.options().delays;
  const ExperimentResult* model = hunt.profile().model();
  std::vector<Candidate> all = find_candidates(*model->trace, failure, limits);
  KnownPlaces known;
  for (const Candidate& candidate : all) known.add(candidate.delay.site, candidate.delay.thread);
  leave_representatives(all, failure.thread);
  arrange(all, hunt.options().order, hunt.options().seed);
  add_longer(all, limits);
  for (const Place& place : hunt.profile().places) {
    if (is_watched_line(place.site) || !known.add(place.site, place.thread)) continue;
    Candidate rare;
    rare.delay = delay_at(place, std::min(limits.least * 3, limits.most));
    if (place.visits > most_visits_of_rare) rare.delay.visits = Intervention::Visits::halving;
    rare.why = fmt::format("{} late before {}, where not every run comes", told(place.thread),
                           to_string(place.site));
    all.push_back(std::move(rare));
  }
  return all;
}

// What was late under control in vain seldom matters on free cores: it is tried there for a while
// only, unless somebody has seen the failure.
Duration time_for_free_runs(const Hunt& hunt) {
  const Duration left = hunt.runner().left();
  return is_covered_under_control(hunt) ? left / 5 : left;
}

void try_trial(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  if (seen && seen->hit) hunt.confirm(trial, *seen);
}

// One plan each: delays would have to be two.
std::vector<Trial> trials_of_lock_cycles(const Hunt& hunt, const Trace& trace) {
  std::vector<Trial> trials;
  if (hunt.goal().is_inverted()) return trials;
  for (const LockCycle& cycle : find_lock_cycles(trace)) {
    trials.push_back({hunt.base_plan(), {}, cycle.why});
    trials.back().plan.interventions = cycle.plan;
  }
  return trials;
}

std::vector<Trial> trials_of_delays(const Hunt& hunt, const FailurePoint& failure) {
  const size_t most = hunt.options().most_candidates;
  std::vector<Trial> trials;
  std::set<std::string> known;
  for (const Candidate& candidate : all_candidates(hunt, failure)) {
    if (most > 0 && trials.size() == most) break;
    if (!known.insert(key_of(candidate.delay)).second) continue;
    trials.push_back({hunt.base_plan(), {}, candidate.why});
    trials.back().plan.interventions.push_back(candidate.delay);
  }
  return trials;
}

}  // namespace

void search_guided(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr) return;
  for (const Trial& trial : trials_of_lock_cycles(hunt, *model->trace)) try_trial(hunt, trial);
  if (hunt.over()) return;
  const FailurePoint failure = find_failure_point(*model->trace, hunt);
  const std::vector<Trial> trials = trials_of_delays(hunt, failure);
  hunt.runner().teller().announce(
      fmt::format("{} delays from a {} run, one per run; failure point: {}", trials.size(),
                  model->outcome.failed() ? "failing" : "passing", failure.how));
  const Duration until = hunt.runner().elapsed() + time_for_free_runs(hunt);
  for (const Trial& trial : trials) {
    if (hunt.over() || hunt.runner().elapsed() > until) return;
    try_trial(hunt, trial);
  }
}

namespace {

constexpr size_t most_delays = 24;
constexpr size_t most_pairs = 60;

bool is_start(const Candidate& candidate) {
  return candidate.delay.position == Intervention::Position::start;
}

// Each place of each thread once, all visits; the starts of threads first, as they shift most.
std::vector<Candidate> delays_of(const Hunt& hunt, const Trace& trace) {
  std::vector<Candidate> all = find_candidates(trace, {}, hunt.options().delays);
  std::erase_if(all, [](const Candidate& one) { return one.single_visit || one.is_long; });
  arrange(all, hunt.options().order, hunt.options().seed);
  std::ranges::stable_partition(all, is_start);
  if (all.size() > most_delays) all.resize(most_delays);
  return all;
}

struct Pair {
  size_t first, second;
};

// By how promising both are together.
std::vector<Pair> pairs_of(const std::vector<Candidate>& delays) {
  std::vector<Pair> pairs;
  for (size_t second = 1; second < delays.size(); ++second)
    for (size_t first = 0; first < second; ++first)
      if (delays[first].delay.thread != delays[second].delay.thread)
        pairs.push_back({first, second});
  std::ranges::stable_sort(pairs, {}, [](const Pair& pair) { return pair.first + pair.second; });
  if (pairs.size() > most_pairs) pairs.resize(most_pairs);
  return pairs;
}

Trial both_late(const Hunt& hunt, const Candidate& first, const Candidate& second, int longer) {
  Trial trial{hunt.base_plan(), {}, first.why + " and " + second.why};
  const Duration delay =
      std::max({first.delay.duration, second.delay.duration, hunt.options().delays.least * 3});
  trial.plan.interventions = {first.delay, second.delay};
  trial.plan.interventions[0].duration = delay;
  trial.plan.interventions[1].duration = delay * longer;
  if (longer > 1) trial.why += fmt::format(", {} times as long", longer);
  return trial;
}

}  // namespace

namespace {

std::vector<Trial> trials_of_pairs(const Hunt& hunt, const Trace& trace) {
  const std::vector<Candidate> delays = delays_of(hunt, trace);
  std::vector<Trial> trials;
  for (const Pair& pair : pairs_of(delays)) {
    const Candidate& first = delays[pair.first];
    const Candidate& second = delays[pair.second];
    trials.push_back(both_late(hunt, first, second, 1));
    trials.push_back(both_late(hunt, first, second, 2));
    trials.push_back(both_late(hunt, second, first, 2));
  }
  return trials;
}

}  // namespace

void search_pairs(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr) return;
  const std::vector<Trial> trials = trials_of_pairs(hunt, *model->trace);
  hunt.runner().teller().announce(fmt::format(
      "{} plans with delays in two threads, equally long and one twice as long: some failures need "
      "both",
      trials.size()));
  for (const Trial& trial : trials) {
    try_trial(hunt, trial);
    if (hunt.over()) return;
  }
}

namespace {

// On free cores, what was foreseen. When that is not so, the place says nothing in company either.
void try_or_refute(Hunt& hunt, const Trial& trial, const std::function<void()>& try_it) {
  const size_t found = hunt.found().size();
  try_it();
  if (hunt.found().size() == found) hunt.foresight().refute(trial.plan.interventions.front());
}

// On free cores it takes the time that the test has seen pass under control, such as a time-out of
// its own.
Trial as_long_as(Trial trial, const Observation& foreseen) {
  if (foreseen.result.outcome.kind != OutcomeKind::timeout)
    trial.takes = foreseen.result.trace->controlled->virtual_time;
  return trial;
}

// A pair that free cores refute fails under control mostly because one of the two does so alone.
void look_at_each(Hunt& hunt, const Trial& pair) {
  for (const Intervention& delay : pair.plan.interventions) {
    if (hunt.over() || delay.action != Intervention::Action::delay) return;
    Trial alone = pair;
    alone.plan.interventions = {delay};
    const auto seen = hunt.foresight().of(alone, TrialEnded::Purpose::candidate);
    if (seen && seen->hit)
      try_or_refute(hunt, alone, [&] { try_trial(hunt, as_long_as(alone, *seen)); });
  }
}

// Whether every one of them could be told about.
bool foresee_all(Hunt& hunt, const std::vector<Trial>& trials) {
  bool all_told = !trials.empty();
  for (const Trial& trial : trials) {
    const auto seen = hunt.foresee(trial);
    all_told = all_told && seen;
    if (seen && seen->hit) {
      try_trial(hunt, as_long_as(trial, *seen));
      look_at_each(hunt, trial);
    }
    if (hunt.over()) return false;
  }
  return all_told;
}

}  // namespace

namespace {

constexpr int share_of_first_lateness = 4;
constexpr Duration longest_comparison = std::chrono::seconds(1);
constexpr int most_halvings = 6;
constexpr double close_enough = 1.25;
constexpr double cost_of_chance = 2;  // for who comes first; again for which thread it is

// A delay that makes the test fail under control, and how little of it does.
struct Foreseen {
  Trial trial;
  Duration least;     // of its longest delay
  Duration lateness;  // that this adds up to
};

Trial with_dose(const Trial& trial, Duration longest) {
  Trial other = trial;
  other.plan = with_longest_delay(trial.plan, longest);
  return other;
}

Duration added_in(const ExperimentResult& result) {
  Duration added{};
  for (const TracedIntervention& state : result.trace->interventions) added += state.added;
  return added;
}

Foreseen least_of(Hunt& hunt, const Trial& trial, const Observation& hit) {
  Duration passes{}, fails = longest_delay(trial.plan), lateness = added_in(hit.result);
  // A hang takes seconds under control, too.
  const int halvings = hit.result.outcome.kind == OutcomeKind::timeout ? 0 : most_halvings;
  for (int i = 0; i < halvings && !hunt.over(); ++i) {
    if (static_cast<double>(fails.count()) <= close_enough * static_cast<double>(passes.count()))
      break;
    const Duration dose = passes + (fails - passes) / 2;
    const auto seen = hunt.foresight().of(with_dose(trial, dose), TrialEnded::Purpose::dose);
    if (!seen) break;
    if (!seen->hit) {
      passes = dose;
    } else {
      fails = dose;
      lateness = added_in(seen->result);
    }
  }
  return {as_long_as(trial, hit), fails, lateness};
}

bool is_named(const Intervention& delay) {
  return delay.threads == Intervention::Threads::named;
}

// What one thread of a pool does in one run, another one does in the next.
std::vector<Trial> for_its_class(const Trial& trial, const Trace& trace) {
  std::vector<Trial> trials;
  const Intervention& delay = trial.plan.interventions.front();
  if (!is_named(delay) || !is_left_to_chance(delay, trace)) return trials;
  for (const Intervention& other : for_its_class(delay)) {
    trials.push_back(trial);
    trials.back().plan.interventions.front() = other;
    trials.back().why += other.visits == Intervention::Visits::only_nth
                             ? ", or whoever of its class comes there first"
                             : ", and all of its class";
  }
  return trials;
}

// The same delay, but longer.
bool is_longer(const Trial& trial, const Trial& other) {
  Intervention same = trial.plan.interventions.front();
  same.duration = other.plan.interventions.front().duration;
  return key_of(same) == key_of(other.plan.interventions.front()) &&
         longest_delay(trial.plan) > longest_delay(other.plan);
}

// Of those that are about as late, the first is the most promising.
int size_of_lateness(const Foreseen& one, const Trace& trace) {
  double lateness = static_cast<double>(std::max<int64_t>(1, one.lateness.count()));
  const Intervention& delay = one.trial.plan.interventions.front();
  if (is_left_to_chance(delay, trace)) lateness *= cost_of_chance;
  if (is_left_to_chance(delay, trace) && is_named(delay)) lateness *= cost_of_chance;
  return static_cast<int>(std::log(lateness) / std::log(close_enough));
}

// It began, and the test passed. What is chance does not depend on how long the delay is.
bool is_too_short(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  if (seen && seen->hit) hunt.confirm(trial, *seen);
  return seen && !seen->hit && seen->fired && !hunt.over();
}

// Twice as long as it takes under control, as others are late on free cores; at last as it was.
void try_foreseen(Hunt& hunt, const Foreseen& one) {
  const Duration generous =
      std::chrono::ceil<std::chrono::milliseconds>(2 * one.least) + std::chrono::milliseconds(20);
  if (generous >= longest_delay(one.trial.plan) ||
      is_too_short(hunt, with_dose(one.trial, generous)))
    try_trial(hunt, one.trial);
}

}  // namespace

// A test may fail in several ways, and the one that takes least is the one that people meet. Where
// no time passes, schedules show all that lateness could.
void search_lateness(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr || !calls_with_times(*model->trace) ||
      !hunt.foresight().is_possible(hunt.base_plan()))
    return;
  std::vector<Foreseen> hits;
  // What is not reached by then is left to `more-lateness`: schedules show most races sooner.
  Duration until = hunt.runner().elapsed() + hunt.time_to_search() / share_of_first_lateness;
  for (const Trial& trial : trials_of_delays(hunt, find_failure_point(*model->trace, hunt))) {
    if (hunt.over() || hunt.runner().elapsed() > until) break;
    ++hunt.coverage().late_trials;
    if (std::ranges::any_of(hits, [&](const Foreseen& hit) { return is_longer(trial, hit.trial); }))
      continue;
    const auto seen = hunt.foresee(trial);
    if (!seen || !seen->hit) continue;
    if (hits.empty()) until = hunt.runner().elapsed() + longest_comparison;
    for (const Trial& other : for_its_class(trial, *model->trace))
      if (const auto as_well = hunt.foresee(other); as_well && as_well->hit)
        hits.push_back(least_of(hunt, other, *as_well));
    hits.push_back(least_of(hunt, trial, *seen));
  }
  std::ranges::stable_sort(
      hits, {}, [&](const Foreseen& one) { return size_of_lateness(one, *model->trace); });
  for (const Foreseen& one : hits) {
    if (hunt.over()) return;
    try_or_refute(hunt, one.trial, [&] { try_foreseen(hunt, one); });
  }
}

void search_more_lateness(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr || !hunt.foresight().is_possible(hunt.base_plan())) return;
  std::vector<Trial> trials = trials_of_lock_cycles(hunt, *model->trace);
  std::vector<Trial> delays = trials_of_delays(hunt, find_failure_point(*model->trace, hunt));
  for (size_t i = hunt.coverage().late_trials; i < delays.size(); ++i)
    trials.push_back(std::move(delays[i]));
  for (Trial& trial : trials_of_pairs(hunt, *model->trace)) trials.push_back(std::move(trial));
  hunt.coverage().was_late_under_control = foresee_all(hunt, trials);
}

bool is_covered_under_control(const Hunt& hunt) {
  return hunt.coverage().was_late_under_control && hunt.goal().wanted().anything();
}

}  // namespace unflake
