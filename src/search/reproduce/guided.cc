#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/reproduce/candidates.h"
#include "search/reproduce/strategy.h"
#include "trace/lock_cycles.h"

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

// The model run first, then what only other runs have shown.
std::vector<Candidate> all_candidates(const Hunt& hunt, const FailurePoint& failure) {
  const DelayLimits& limits = hunt.options().delays;
  const ExperimentResult* model = hunt.profile().model();
  std::vector<Candidate> all = find_candidates(*model->trace, failure, limits);
  arrange(all, hunt.options().order, hunt.options().seed);
  add_longer(all, limits);
  std::set<std::string> known;
  for (const Candidate& candidate : all)
    known.insert(to_string(candidate.delay.site) + "@" + candidate.delay.thread.text);
  for (const Place& place : hunt.profile().places) {
    if (!known.insert(to_string(place.site) + "@" + place.thread.text).second) continue;
    if (is_watched_line(place.site)) continue;
    Candidate rare;
    rare.delay = delay_at(place, std::min(limits.least * 3, limits.most));
    if (place.visits > most_visits_of_rare) rare.delay.visits = Intervention::Visits::halving;
    rare.why = fmt::format("{} late before {}, where not every run comes", place.thread.text,
                           to_string(place.site));
    all.push_back(std::move(rare));
  }
  return all;
}

void try_trial(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  if (seen && seen->hit) hunt.confirm(trial, *seen);
}

// One plan each: delays would have to be two.
void try_lock_cycles(Hunt& hunt, const Trace& trace) {
  for (const LockCycle& cycle : find_lock_cycles(trace)) {
    Trial trial{hunt.base_plan(), {}, cycle.why};
    trial.plan.interventions = cycle.plan;
    try_trial(hunt, trial);
    if (hunt.over()) return;
  }
}

}  // namespace

void search_guided(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr) return;
  if (!hunt.goal().is_inverted()) try_lock_cycles(hunt, *model->trace);
  if (hunt.over()) return;
  const FailurePoint failure = find_failure_point(*model->trace, hunt);
  const std::vector<Candidate> candidates = all_candidates(hunt, failure);
  hunt.announce(fmt::format("{} delays from a {} run, one per run; failure point: {}",
                            candidates.size(), model->outcome.failed() ? "failing" : "passing",
                            failure.how));
  std::set<std::string> tried;
  for (const Candidate& candidate : candidates) {
    const size_t most = hunt.options().most_candidates;
    if (most > 0 && tried.size() == most) return;
    if (!tried.insert(key_of(candidate.delay)).second) continue;
    Trial trial{hunt.base_plan(), {}, candidate.why};
    trial.plan.interventions.push_back(candidate.delay);
    const auto seen = hunt.observe(trial);
    if (!seen) return;
    if (seen->hit) hunt.confirm(trial, *seen);
    if (hunt.over()) return;
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

void search_pairs(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr) return;
  const std::vector<Candidate> delays = delays_of(hunt, *model->trace);
  const std::vector<Pair> pairs = pairs_of(delays);
  hunt.announce(
      fmt::format("{} pairs of delays in two threads, equally long and one twice as long: some "
                  "failures need both",
                  pairs.size()));
  for (const Pair& pair : pairs) {
    const Candidate& first = delays[pair.first];
    const Candidate& second = delays[pair.second];
    try_trial(hunt, both_late(hunt, first, second, 1));
    try_trial(hunt, both_late(hunt, first, second, 2));
    try_trial(hunt, both_late(hunt, second, first, 2));
    if (hunt.over()) return;
  }
}

}  // namespace unflake
