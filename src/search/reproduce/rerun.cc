#include <fmt/format.h>

#include "search/reproduce/strategy.h"

namespace unflake {

// What comes back by chance is no reproduction, so nothing is confirmed here: the rate is all that
// there is to tell.
void search_rerun(Hunt& hunt) {
  hunt.announce("plain runs until the time is over: what all other strategies must beat");
  const Trial trial{hunt.base_plan(), {}, "without delays"};
  int runs = 0, hits = 0;
  while (const auto seen = hunt.observe(trial)) {
    ++runs;
    hits += seen->hit;
  }
  hunt.say(fmt::format("{} of {} plain runs showed it", hits, runs));
}

}  // namespace unflake
