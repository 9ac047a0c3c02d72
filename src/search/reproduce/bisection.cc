#include <fmt/format.h>

#include "search/reproduce/place_delays.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

std::string name_of(const std::vector<Place>& places) {
  const Place& first = places.front();
  const std::string name = fmt::format("{} in {}", to_string(first.site), first.thread.text);
  if (places.size() == 1) return name;
  const Place& last = places.back();
  return fmt::format("{} places from {} to {} in {}", places.size(), name, to_string(last.site),
                     last.thread.text);
}

// Whether a failure of these places, or of some of them, was confirmed. A set is looked into only
// when it fails, and is confirmed itself only when neither half does alone: what fails once by
// chance is not believed, and what needs both halves is not lost.
bool explore(Hunt& hunt, const std::vector<Place>& places) {
  const Trial trial = delay_all(hunt, places, hunt.initial_delay(), "late at " + name_of(places));
  const auto seen = hunt.observe(trial);
  if (!seen || !seen->hit) return false;
  if (places.size() > 1) {
    hunt.say(fmt::format("fails when late at {}: looking at each half alone", name_of(places)));
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>((places.size() + 1) / 2);
    const bool first = explore(hunt, {places.begin(), middle});
    const bool second = explore(hunt, {middle, places.end()});
    if (first || second || hunt.over()) return first || second;
  }
  return hunt.confirm(trial, *seen);
}

}  // namespace

void search_bisection(Hunt& hunt) {
  const std::vector<Place> places = sleepy_places(hunt.profile());
  if (places.empty()) return;
  const Trial all = delay_all(hunt, places, hunt.initial_delay(), "");
  hunt.announce(fmt::format("all {} places late at once by {}; the halves of what fails follow",
                            places.size(),
                            format_duration(all.plan.interventions.front().duration)));
  explore(hunt, places);
}

}  // namespace unflake
