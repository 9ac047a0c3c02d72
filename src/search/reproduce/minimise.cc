#include "search/reproduce/minimise.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace unflake {
namespace {

using Numbers = std::vector<size_t>;

Numbers part_of(const Numbers& all, size_t part, size_t parts) {
  const auto at = [&](size_t i) {
    return all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / parts);
  };
  return {at(part), at(part + 1)};
}

Numbers without(const Numbers& all, const Numbers& some) {
  Numbers rest;
  std::ranges::set_difference(all, some, std::back_inserter(rest));
  return rest;
}

class Minimiser {
 public:
  explicit Minimiser(const StillFails& fails) : fails_(fails) {}

  Numbers operator()(Numbers current) {
    for (size_t parts = 2; current.size() > 1;) {
      if (auto part = failing_part(current, parts); !part.empty()) {
        current = std::move(part);
        parts = 2;
      } else if (auto rest = failing_rest(current, parts); !rest.empty()) {
        current = std::move(rest);
        parts = std::max<size_t>(parts - 1, 2);
      } else if (parts == current.size()) {
        break;
      } else {
        parts *= 2;
      }
      parts = std::min(parts, current.size());
    }
    return current;
  }

 private:
  bool fails(const Numbers& numbers) {
    const auto [known, is_new] = known_.try_emplace(numbers, false);
    if (is_new) known->second = fails_(numbers);
    return known->second;
  }

  Numbers failing_part(const Numbers& current, size_t parts) {
    for (size_t i = 0; i < parts; ++i)
      if (auto part = part_of(current, i, parts); fails(part)) return part;
    return {};
  }

  Numbers failing_rest(const Numbers& current, size_t parts) {
    for (size_t i = 0; i < parts; ++i)
      if (auto rest = without(current, part_of(current, i, parts)); fails(rest)) return rest;
    return {};
  }

  const StillFails& fails_;
  std::map<Numbers, bool> known_;
};

}  // namespace

std::vector<size_t> minimise(size_t n, const StillFails& fails) {
  std::vector<size_t> all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  return Minimiser(fails)(std::move(all));
}

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
  const Duration longest =
      std::min(hunt.runner().left() / most_of_what_is_left, hunt.options().timeout / 2);
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
