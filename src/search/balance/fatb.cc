#include "search/balance/balance_search.h"
#include "search/balance/round_up.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr double close_enough = 1.1;
constexpr Duration smallest = 1ms;

}  // namespace

// FaTB's search: a fixed number of runs for each value, half the way down when none of them failed
// and half the way back up when one did. The paper halves towards zero also below a value that has
// failed, and so never comes to an end; here what has failed bounds it.
void BalanceSearch::halve_all(const std::vector<size_t>& members) {
  for (const size_t i : members)
    if (!runs_.over()) halve(i);
  for (const size_t i : members) final_[i] = std::min(round_up(holding_[i]), own_[i]);
  is_settled_ = !runs_.over();
}

void BalanceSearch::halve(size_t value) {
  Bracket& bracket = brackets_[value];
  Duration below = bracket.fails.value_or(options_.from.value_or(Duration::zero()));
  while (!runs_.over()) {
    Setting tried = holding_;
    tried[value] = (below + bracket.holds) / 2;
    if (tried[value] < smallest) return;
    if (!runs_.run(tried, LoadLevel::idle, options_.fatb_runs)) return;
    const Count seen = runs_.failures(tried, LoadLevel::idle);
    tell(tried, LoadLevel::idle, seen.hits, seen.runs);
    runs_.judge(tried, LoadLevel::idle, seen.hits > 0 ? Verdict::fails : Verdict::holds, 0);
    if (seen.hits > 0) {
      bracket.fails = tried[value];
    } else {
      bracket.holds = tried[value];
      holding_ = tried;
    }
    below = bracket.fails.value_or(Duration::zero());
    if (bracket.fails && static_cast<double>(bracket.holds.count()) <=
                             static_cast<double>(bracket.fails->count()) * close_enough)
      return;
  }
}

}  // namespace unflake
