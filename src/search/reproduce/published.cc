#include <fmt/format.h>

#include <array>

#include "search/reproduce/shrink.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

std::string name_of(const std::vector<Place>& places) {
  const Place& first = places.front();
  const std::string name = fmt::format("{} in {}", to_string(first.site), told(first.thread));
  if (places.size() == 1) return name;
  const Place& last = places.back();
  return fmt::format("{} places from {} to {} in {}", places.size(), name, to_string(last.site),
                     told(last.thread));
}

// Whether a failure of these places, or of some of them, was confirmed. A set is looked into only
// when it fails, and is confirmed itself only when neither half does alone: what fails once by
// chance is not believed, and what needs both halves is not lost.
bool explore(Hunt& hunt, const std::vector<Place>& places) {
  const Trial trial =
      delay_all(hunt, places, hunt.times().initial_delay(), "late at " + name_of(places));
  const auto seen = hunt.observe(trial);
  if (!seen || !seen->hit) return false;
  if (places.size() > 1) {
    hunt.runner().teller().say(
        fmt::format("fails when late at {}: looking at each half alone", name_of(places)));
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
  const Trial all = delay_all(hunt, places, hunt.times().initial_delay(), "");
  hunt.runner().teller().announce(
      fmt::format("all {} places late at once by {}; the halves of what fails follow",
                  places.size(), format_duration(all.plan.interventions.front().duration)));
  explore(hunt, places);
}

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
  Trial trial = delay_all(hunt, places, hunt.times().initial_delay(),
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
  hunt.runner().teller().announce(
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
  hunt.runner().teller().say(fmt::format("{} of {} places are needed",
                                         last->trial.plan.interventions.size(), places.size()));
  hunt.confirm(last->trial, last->seen);
}

void search_one_by_one(Hunt& hunt) {
  const std::vector<Place> places = sleepy_places(hunt.profile());
  const Duration delay = hunt.times().initial_delay();
  hunt.runner().teller().announce(
      fmt::format("{} places, one per run, each late by {} because any of them alone may do",
                  places.size(), format_duration(delay)));
  for (const Place& place : places) {
    const Trial trial =
        delay_all(hunt, {place}, delay,
                  fmt::format("{} late before {}", told(place.thread), to_string(place.site)));
    const auto seen = hunt.observe(trial);
    if (!seen) return;
    if (seen->hit) hunt.confirm(trial, *seen);
    if (hunt.over()) return;
  }
}

// What comes back by chance is not a reproduction, so nothing is confirmed here: the rate is all
// that there is to tell.
void search_rerun(Hunt& hunt) {
  hunt.runner().teller().announce(
      "plain runs until the time is over: what all other strategies must beat");
  const Trial trial{hunt.base_plan(), {}, "without delays"};
  Count shown;
  while (const auto seen = hunt.observe(trial)) shown.add(seen->hit);
  hunt.runner().teller().say(fmt::format("{} of {} plain runs showed it", shown.hits, shown.runs));
}

namespace {

constexpr int runs_each = 5;

struct Shake {
  Conditions conditions;
  const char* what;
};

// From what any busy machine does to a test to what only a very busy one does.
const std::array ladder = {
    Shake{{true, 1, 0}, "all threads on one core"},
    Shake{{true, 1, 2}, "all threads on one core, with two busy processes there"},
    Shake{{false, 0.5, 0}, "half of the time"},
    Shake{{false, 0.2, 0}, "a fifth of the time"},
    Shake{{false, 0.05, 0}, "a twentieth of the time"},
    Shake{{true, 0.2, 0}, "all threads on one core, a fifth of the time"},
    Shake{{false, 1, 4}, "four busy processes beside it"},
    Shake{{false, 1, 8}, "eight busy processes beside it"},
};

void try_conditions(Hunt& hunt, const Shake& shake) {
  const Trial trial{hunt.base_plan(), shake.conditions, shake.what};
  for (int i = 0; i < runs_each; ++i) {
    const auto seen = hunt.observe(trial);
    if (!seen) return;
    if (!seen->hit) continue;
    hunt.confirm(trial, *seen);
    return;
  }
}

}  // namespace

std::vector<Conditions> scarce_conditions() {
  std::vector<Conditions> all;
  for (const Shake& shake : ladder) all.push_back(shake.conditions);
  return all;
}

void search_shake(Hunt& hunt) {
  for (const Shake& shake : ladder) {
    if (hunt.over()) return;
    hunt.runner().teller().announce(fmt::format("no delays but a scarce machine: {}", shake.what));
    try_conditions(hunt, shake);
  }
}

}  // namespace unflake
