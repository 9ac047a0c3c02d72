#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>

#include "search/reproduce/candidates.h"

namespace unflake {
namespace {

struct NamedOrder {
  std::string_view name;
  Order order;
};

constexpr std::array<NamedOrder, 4> orders = {{{"turns", Order::turns},
                                               {"nearest", Order::nearest},
                                               {"appearance", Order::appearance},
                                               {"random", Order::random}}};

// How often this site has come before in the list, whoever the thread was.
using Repeats = std::map<std::string, int>;

int repeats_of(const Candidate& candidate, Repeats& repeats) {
  const auto& delay = candidate.delay;
  return repeats[to_string(delay.site) + "/" + std::to_string(static_cast<int>(delay.position))]++;
}

// Worth trying at all before the others: it flips something, with one delay for all visits that no
// unneeded time-out makes long.
int stage_of(const Candidate& candidate) {
  return (candidate.flips == Candidate::Flips::nothing) * 4 + candidate.is_long * 2 +
         candidate.single_visit;
}

void sort_within_threads(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(stage_of(a), -static_cast<int>(a.flips), !a.starts_burst, a.kind, a.at) <
           std::tuple(stage_of(b), -static_cast<int>(b.flips), !b.starts_burst, b.kind, b.at);
  });
}

void take_turns(std::vector<Candidate>& candidates) {
  sort_within_threads(candidates);
  struct Key {
    int stage, repeats, turn, flips;
    auto operator<=>(const Key&) const = default;
  };
  Repeats repeats;
  std::map<std::tuple<int, int, std::string>, int> turns;  // of a class of threads, in a stage
  std::vector<std::pair<Key, size_t>> keys;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const int stage = stage_of(candidate);
    const int repeated = candidate.single_visit ? 0 : repeats_of(candidate, repeats);
    const int turn = turns[{stage, repeated, candidate.thread_class}]++;
    keys.push_back({{stage, repeated, turn, -static_cast<int>(candidate.flips)}, i});
  }
  std::ranges::sort(keys);
  std::vector<Candidate> arranged;
  for (const auto& [key, i] : keys) arranged.push_back(std::move(candidates[i]));
  candidates = std::move(arranged);
}

}  // namespace

std::optional<Order> order_from(std::string_view name) {
  for (const NamedOrder& known : orders)
    if (known.name == name) return known.order;
  return std::nullopt;
}

std::string_view to_string(Order order) {
  return std::ranges::find(orders, order, &NamedOrder::order)->name;
}

void arrange(std::vector<Candidate>& candidates, Order order, uint64_t seed) {
  if (order == Order::turns) take_turns(candidates);
  if (order == Order::nearest) std::ranges::stable_sort(candidates, std::greater{}, &Candidate::at);
  if (order == Order::appearance) std::ranges::stable_sort(candidates, {}, &Candidate::at);
  if (order == Order::random) {
    std::mt19937_64 dice(seed);
    std::ranges::shuffle(candidates, dice);
  }
}

}  // namespace unflake
