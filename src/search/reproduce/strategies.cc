#include <algorithm>
#include <array>

#include "search/reproduce/shrink.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

constexpr std::array all = {
    Strategy{"guided", "one delay per run, where a trace shows that it can flip two events",
             search_guided, true},
    Strategy{"pairs", "two delays in different threads, for what needs both", search_pairs, true},
    Strategy{"functions", "entries and lines of functions that run concurrently (FlakeSync)",
             search_functions, true},
    Strategy{"bisection", "all calls late at once, then the halves of what fails (FlakeRake)",
             search_bisection, true},
    Strategy{"shake", "no delays, but scarce processors", search_shake, true},
    Strategy{"one-by-one", "every call late, one per run (FlakeRake)", search_one_by_one, false},
    Strategy{"ddmin", "all calls late at once, then delta debugging", search_ddmin, false},
    Strategy{"rerun", "plain runs: the rate of failures without any delay", search_rerun, false},
};

}  // namespace

std::span<const Strategy> strategies() {
  return all;
}

const Strategy* find_strategy(std::string_view name) {
  const auto found = std::ranges::find(all, name, &Strategy::name);
  return found == all.end() ? nullptr : &*found;
}

void search(Hunt& hunt, std::span<const Strategy* const> chosen) {
  // A wider strategy is for what a narrower one does not find.
  for (const Strategy* strategy : chosen) {
    if (hunt.over() || !hunt.found().empty()) break;
    hunt.begin(std::string(strategy->name));
    hunt.say(std::string(strategy->about));
    strategy->search(hunt);
  }
}

void refine(Hunt& hunt) {
  for (Found& found : hunt.found()) {
    if (hunt.stopped() || hunt.error()) break;
    hunt.begin("slack");
    hunt.say("leaving out what the failure does not need, then the smallest delay that is enough");
    shrink(hunt, found);
    measure_slack(hunt, found);
  }
}

}  // namespace unflake
