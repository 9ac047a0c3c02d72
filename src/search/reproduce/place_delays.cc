#include "search/reproduce/place_delays.h"

#include <algorithm>

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration least_delay = 1ms;
constexpr int most_of_what_is_left = 4;  // a run may take the fourth part of it

}  // namespace

int most_delays_in_a_thread(const std::vector<Place>& places) {
  // Halving adds up to less than two.
  std::map<std::string, int> delays;
  int most = 1;
  for (const Place& place : places)
    most = std::max(most, delays[place.thread.text] += place.visits > 1 ? 2 : 1);
  return most;
}

std::vector<Place> sleepy_places(const Profile& profile) {
  std::vector<Place> places;
  std::ranges::copy_if(profile.places, std::back_inserter(places),
                       [](const Place& place) { return !is_watched_line(place.site); });
  return places;
}

Trial delay_all(const Hunt& hunt, const std::vector<Place>& places, Duration delay,
                std::string why) {
  const Duration longest = std::min(hunt.left() / most_of_what_is_left, hunt.options().timeout / 2);
  const Duration room = longest / most_delays_in_a_thread(places);
  Trial trial{hunt.base_plan(), {}, std::move(why)};
  for (const Place& place : places) {
    trial.plan.interventions.push_back(
        delay_at(place, std::max(std::min(delay, room), least_delay)));
    trial.plan.interventions.back().visits = Intervention::Visits::halving;
  }
  return trial;
}

}  // namespace unflake
