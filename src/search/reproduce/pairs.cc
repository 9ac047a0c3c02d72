#include <fmt/format.h>

#include <algorithm>

#include "search/reproduce/candidates.h"
#include "search/reproduce/strategy.h"

namespace unflake {
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

void try_trial(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  if (seen && seen->hit) hunt.confirm(trial, *seen);
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
