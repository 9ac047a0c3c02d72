#include "search/detect/order_runs.h"

#include <algorithm>
#include <numeric>

namespace unflake {
namespace {

constexpr uint32_t most_foreseen_seeds = 5000;  // looked at, without a run
constexpr uint32_t most_tried_seeds = 24;       // where only a run shows the order
constexpr size_t most_by_chance = 4;            // tests that a seed may have in an order by chance

std::vector<size_t> sorted_copy(std::vector<size_t> tests) {
  std::ranges::sort(tests);
  return tests;
}

// Whether an order begins like that, when its first may change places.
bool begins(std::vector<size_t> order, std::vector<size_t> seen, size_t free) {
  if (seen.size() > order.size() || seen.size() < free) return false;
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(free));
  std::sort(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(free));
  return std::equal(seen.begin(), seen.end(), order.begin());
}

}  // namespace

std::optional<size_t> place_in(const OrderedRun& run, size_t test) {
  const auto found = std::ranges::find(run.order, test);
  if (found == run.order.end()) return std::nullopt;
  return static_cast<size_t>(found - run.order.begin());
}

std::vector<size_t> before(const OrderedRun& run, size_t place) {
  return {run.order.begin(), run.order.begin() + static_cast<std::ptrdiff_t>(place)};
}

bool says_something(const OrderedRun& run, size_t place) {
  return run.outcomes[place].kind != OutcomeKind::skipped;
}

bool failed_in(const OrderedRun& run, size_t place) {
  return run.outcomes[place].failed();
}

std::optional<OrderedRun> OrderRuns::make(const std::vector<size_t>& tests,
                                          const Arrangement& how) {
  if (has_ended()) return std::nullopt;
  auto run = suite_.run(tests, how);
  if (!run) return std::nullopt;
  ++processes_;
  test_runs_ += static_cast<int64_t>(run->order.size());
  run->arrangement = how;
  return run;
}

bool OrderRuns::make_all(const Arrangement& how) {
  std::vector<size_t> left(suite_.size());
  std::iota(left.begin(), left.end(), size_t{0});
  bool was_made = false;
  while (!left.empty()) {
    auto run = make(left, how);
    if (!run || run->order.empty()) break;
    const std::set<size_t> seen(run->order.begin(), run->order.end());
    if (!was_made) arrangements_.push_back(how);
    was_made = true;
    std::erase_if(left, [&](size_t test) { return seen.contains(test); });
    count_pairs(*run);
    runs_.push_back(std::move(*run));
  }
  return was_made;
}

// A run of all tests shows the order of some of them, too.
std::optional<Arrangement> OrderRuns::seen_arrangement(const std::vector<size_t>& order) const {
  for (const OrderedRun& run : runs_) {
    size_t next = 0;
    for (const size_t test : run.order)
      if (next < order.size() && order[next] == test) ++next;
    if (next == order.size()) return run.arrangement;
  }
  return std::nullopt;
}

std::optional<OrderedRun> OrderRuns::try_arrangement(const std::vector<size_t>& order, size_t free,
                                                     const Arrangement& how) {
  const auto foreseen = suite_.foreseen(order, how);
  if (foreseen && !begins(order, *foreseen, free)) return std::nullopt;
  auto run = make(sorted_copy(order), how);
  if (!run) return std::nullopt;
  // Others may have been run with them, because they need each other.
  std::vector<size_t> seen;
  for (const size_t test : run->order)
    if (std::ranges::find(order, test) != order.end()) seen.push_back(test);
  if (!begins(order, seen, free)) return std::nullopt;
  found_[order] = how;
  return run;
}

std::optional<OrderedRun> OrderRuns::in_order(const std::vector<size_t>& order, size_t free) {
  if (const auto known = found_.find(order); known != found_.end())
    return try_arrangement(order, free, known->second);
  if (const auto seen = seen_arrangement(order))
    if (auto run = try_arrangement(order, free, *seen)) return run;
  if (order.size() > most_by_chance) return std::nullopt;
  const uint32_t most = can_foresee(order) ? most_foreseen_seeds : most_tried_seeds;
  for (uint32_t seed = 1; seed <= most && !has_ended(); ++seed)
    if (auto run = try_arrangement(order, free, {Arrangement::Kind::shuffled, seed})) return run;
  return std::nullopt;
}

void OrderRuns::count_pairs(const OrderedRun& run) {
  is_before_.resize(tests(), std::vector<bool>(tests()));
  for (size_t i = 0; i < run.order.size(); ++i)
    for (size_t j = i + 1; j < run.order.size(); ++j) {
      const size_t a = run.order[i], b = run.order[j];
      if (is_before_[a][b]) continue;
      is_before_[a][b] = true;
      both_ += is_before_[b][a];
    }
}

double OrderRuns::pairs_seen() const {
  const auto count = static_cast<double>(tests());
  return count < 2 ? 1 : static_cast<double>(both_) / (count * (count - 1) / 2);
}

}  // namespace unflake
