#include <fmt/format.h>

#include "search/reproduce/place_delays.h"
#include "search/reproduce/strategy.h"

namespace unflake {

void search_one_by_one(Hunt& hunt) {
  const std::vector<Place> places = sleepy_places(hunt.profile());
  const Duration delay = hunt.initial_delay();
  hunt.announce(
      fmt::format("{} places, one per run, each late by {} because any of them alone may do",
                  places.size(), format_duration(delay)));
  for (const Place& place : places) {
    const Trial trial =
        delay_all(hunt, {place}, delay,
                  fmt::format("{} late before {}", place.thread.text, to_string(place.site)));
    const auto seen = hunt.observe(trial);
    if (!seen) return;
    if (seen->hit) hunt.confirm(trial, *seen);
    if (hunt.over()) return;
  }
}

}  // namespace unflake
