#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/reproduce/candidates.h"
#include "search/reproduce/strategy.h"

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

}  // namespace

void search_guided(Hunt& hunt) {
  const ExperimentResult* model = hunt.profile().model();
  if (model == nullptr) return;
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

}  // namespace unflake
