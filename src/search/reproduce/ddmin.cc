#include <fmt/format.h>

#include "search/reproduce/minimise.h"
#include "search/reproduce/place_delays.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

std::vector<Place> pick(const std::vector<Place>& places, const std::vector<size_t>& numbers) {
  std::vector<Place> picked;
  for (const size_t number : numbers) picked.push_back(places[number]);
  return picked;
}

struct Hit {
  Trial trial;
  Observation seen;
};

std::optional<Hit> try_all(Hunt& hunt, const std::vector<Place>& places) {
  Trial trial = delay_all(hunt, places, hunt.initial_delay(),
                          fmt::format("late at {} places together", places.size()));
  auto seen = hunt.observe(trial);
  if (!seen || !seen->hit) return std::nullopt;
  return Hit{std::move(trial), std::move(*seen)};
}

}  // namespace

// A set is asked once: a failure by chance is found out by the confirmation at the end, and a pass
// by chance only leaves a place too many, while five runs of every set would take five times the
// budget.
void search_ddmin(Hunt& hunt) {
  const std::vector<Place> places = sleepy_places(hunt.profile());
  if (places.empty()) return;
  hunt.announce(
      fmt::format("all {} places late at once; what fails is taken apart until every place "
                  "that is left is needed",
                  places.size()));
  std::optional<Hit> last = try_all(hunt, places);
  if (!last) return;
  minimise(places.size(), [&](const std::vector<size_t>& numbers) {
    auto hit = try_all(hunt, pick(places, numbers));
    if (hit) last = std::move(hit);
    return hit.has_value();
  });
  if (hunt.over()) return;
  hunt.say(fmt::format("{} of {} places are needed", last->trial.plan.interventions.size(),
                       places.size()));
  hunt.confirm(last->trial, last->seen);
}

}  // namespace unflake
