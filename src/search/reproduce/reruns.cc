#include <fmt/format.h>

#include <array>

#include "search/reproduce/strategy.h"

namespace unflake {

// What comes back by chance is no reproduction, so nothing is confirmed here: the rate is all that
// there is to tell.
void search_rerun(Hunt& hunt) {
  hunt.announce("plain runs until the time is over: what all other strategies must beat");
  const Trial trial{hunt.base_plan(), {}, "without delays"};
  Count shown;
  while (const auto seen = hunt.observe(trial)) shown.add(seen->hit);
  hunt.say(fmt::format("{} of {} plain runs showed it", shown.hits, shown.runs));
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
    hunt.announce(fmt::format("no delays but a scarce machine: {}", shake.what));
    try_conditions(hunt, shake);
  }
}

}  // namespace unflake
