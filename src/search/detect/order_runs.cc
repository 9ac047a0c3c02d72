#include "search/detect/order_search.h"

#include <algorithm>
#include <map>
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

// Whoever comes last has all others before it, where that can be known; elsewhere any will do.
std::vector<Arrangement> OrderRuns::draws_with_last(const std::vector<size_t>& tests, size_t last,
                                                    uint32_t seed, size_t most) const {
  std::vector<Arrangement> draws;
  for (uint32_t i = 0; i < most_foreseen_seeds && draws.size() < most; ++i) {
    const Arrangement how{Arrangement::Kind::shuffled, seed + i};
    const auto order = suite_.foreseen(tests, how);
    if (!order || order->back() == last) draws.push_back(how);
  }
  return draws;
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

namespace {

constexpr size_t likely_ones = 6;  // tried before others
constexpr size_t most_ready = 80;  // of those whose order is at hand
constexpr size_t few_left = 6;     // that are tried one by one
constexpr uint32_t most_gathering_runs = 32;
constexpr int64_t suite_runs_to_gather = 3;

TestNumbers behind_first(const TestNumbers& tests, const TestNumbers& list) {
  const auto first = std::ranges::find_if(list, [&](size_t test) { return holds(tests, test); });
  return {first == list.end() ? first : first + 1, list.end()};
}

class UndoerSearch {
 public:
  UndoerSearch(OrderRuns& runs, OrderSuspect& suspect, uint32_t seed)
      : runs_(runs),
        suspect_(suspect),
        makers_(suspect.found.back().makers),
        undoers_(suspect.found.back().undoers),
        seed_(seed) {
    for (const bool hit : {false, true})
      for (auto& prefix : prefixes_of(runs, suspect, hit)) add_evidence(std::move(prefix), hit);
  }

  // First those that stood there whenever there was no hit: one that undoes hides the others. What
  // undoes one relation of a test undoes the others, too, so that one thorough search is enough.
  void operator()() {
    for (const auto& other : suspect_.found)
      for (const size_t test : other.undoers)
        if (other.makers != makers_ && undoes(test).value_or(false)) undoers_.push_back(test);
    if (suspect_.found.size() > 1) return;
    try_some(likely_ones, 1, false);
    halve_misses();
    try_some(most_ready, 0, true);
    gather();
    halve_misses();
    try_some(few_left + 1, makers_.size() > 1 ? 1 : 0, false);
  }

 private:
  struct Seen {
    TestNumbers prefix;
    bool is_hit = false;
  };

  // A run says something when the makers came before the test, and no others can have hit it.
  void add_evidence(TestNumbers prefix, bool is_hit) {
    const bool has_others = std::ranges::any_of(suspect_.found, [&](const auto& other) {
      return other.makers != makers_ && holds_all(prefix, other.makers);
    });
    if (holds_all(prefix, makers_) && !(is_hit && has_others))
      evidence_.push_back({std::move(prefix), is_hit});
  }

  bool is_maker(size_t test) const {
    return std::ranges::any_of(suspect_.found,
                               [&](const auto& found) { return holds(found.makers, test); });
  }

  // Whoever stood between the makers and a hit does not undo it. How often the others stood there
  // without a hit.
  std::map<size_t, int> may_undo() const {
    std::map<size_t, int> left;
    for (size_t test = 0; test < runs_.tests(); ++test)
      if (test != suspect_.test && !is_maker(test)) left[test] = 0;
    for (const Seen& seen : evidence_)
      if (seen.is_hit)
        for (const size_t test : behind_last(makers_, seen.prefix)) left.erase(test);
    for (const Seen& seen : evidence_)
      if (!seen.is_hit)
        for (const size_t test : behind_first(makers_, seen.prefix))
          if (left.contains(test)) ++left[test];
    return left;
  }

  // Behind the makers and without a hit, somebody in between undoes: the one half or the other.
  // Only where a part of the tests keeps the order that all of them had.
  void halve_misses() {
    if (!runs_.keeps_orders()) return;
    for (const Seen& seen : std::vector(evidence_)) {
      const auto left = may_undo();
      TestNumbers between = behind_first(makers_, seen.prefix);
      const bool is_explained =
          std::ranges::any_of(between, [&](size_t test) { return holds(undoers_, test); });
      std::erase_if(between, [&](size_t test) { return !left.contains(test); });
      if (seen.is_hit || is_explained || between.empty()) continue;
      if (const auto one = one_of(seen.prefix, between); one && !holds(tried_, *one)) {
        tried_.push_back(*one);
        if (undoes(*one).value_or(is_only_one(*one))) undoers_.push_back(*one);
      }
    }
  }

  // Which of these, in the order of this run, keeps the test from being hit. Nothing: it takes
  // several, or cannot be told.
  std::optional<size_t> one_of(const TestNumbers& prefix, TestNumbers some) {
    while (some.size() > 1) {
      const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
      TestNumbers half(some.begin(), middle);
      TestNumbers order;
      for (const size_t test : prefix)
        if (holds(makers_, test) || holds(half, test)) order.push_back(test);
      order.push_back(suspect_.test);
      const auto run = runs_.in_order(order);
      const auto place = run ? place_in(*run, suspect_.test) : std::nullopt;
      if (!place || !says_something(*run, *place)) return std::nullopt;
      add_evidence(before(*run, *place), suspect_.is_hit_in(*run));
      some = suspect_.is_hit_in(*run) ? TestNumbers(middle, some.end()) : std::move(half);
    }
    return some.front();
  }

  // Runs of the makers, the test and all that may still undo, in other orders, until few are left.
  void gather() {
    const int64_t most =
        runs_.test_runs() + suite_runs_to_gather * static_cast<int64_t>(runs_.tests());
    for (uint32_t i = 0; i < most_gathering_runs && runs_.test_runs() < most; ++i) {
      TestNumbers tests = makers_;
      tests.push_back(suspect_.test);
      const size_t needed = tests.size();
      for (const auto& [test, points] : may_undo())
        if (!holds(tried_, test)) tests.push_back(test);
      if (tests.size() - needed <= few_left) return;
      std::ranges::sort(tests);
      const auto run = runs_.make(tests, {Arrangement::Kind::shuffled, seed_ + i});
      if (!run) return;
      const auto place = place_in(*run, suspect_.test);
      if (place && says_something(*run, *place))
        add_evidence(before(*run, *place), suspect_.is_hit_in(*run));
    }
  }

  // The likely ones first.
  void try_some(size_t most, int least_points, bool only_ready) {
    auto left = may_undo();
    TestNumbers ranked;
    for (const auto& [test, points] : left)
      if (points >= least_points && !holds(tried_, test) && (!only_ready || is_ready(test)))
        ranked.push_back(test);
    std::ranges::stable_sort(ranked, std::greater<>(), [&](size_t test) { return left[test]; });
    ranked.resize(std::min(ranked.size(), most));
    for (const size_t test : ranked) {
      tried_.push_back(test);
      if (undoes(test).value_or(is_only_one(test))) undoers_.push_back(test);
    }
  }

  // Whether in some run without a hit nobody else stood there who may undo.
  bool is_only_one(size_t test) const {
    const auto left = may_undo();
    return std::ranges::any_of(evidence_, [&](const Seen& seen) {
      auto between = behind_first(makers_, seen.prefix);
      std::erase_if(between, [&](size_t one) { return !left.contains(one); });
      return !seen.is_hit && between == TestNumbers{test};
    });
  }

  // One run will show it.
  bool is_ready(size_t test) const {
    const auto order = with_between(test);
    return runs_.can_foresee(order) || (runs_.keeps_orders() && runs_.has_seen(order));
  }

  // The makers come the other way round where only that was seen.
  TestNumbers with_between(size_t test) const {
    TestNumbers order = makers_;
    order.insert(order.end(), {test, suspect_.test});
    TestNumbers other = order;
    std::reverse(other.begin(), other.end() - 2);
    return !runs_.has_seen(order) && runs_.has_seen(other) ? other : order;
  }

  // Nothing: such an order cannot be had.
  std::optional<bool> undoes(size_t test) {
    const auto order = with_between(test);
    for (int i = 0; i < 2; ++i) {
      const auto run = runs_.in_order(order, makers_.size());
      const auto place = run ? place_in(*run, suspect_.test) : std::nullopt;
      if (!place || !says_something(*run, *place)) return std::nullopt;
      if (suspect_.is_hit_in(*run)) return false;
    }
    return true;
  }

  OrderRuns& runs_;
  const OrderSuspect& suspect_;
  const TestNumbers makers_;
  TestNumbers& undoers_;
  const uint32_t seed_;
  std::vector<Seen> evidence_;
  TestNumbers tried_;
};

}  // namespace

bool OrderSuspect::is_hit_in(const OrderedRun& run) const {
  const auto place = place_in(run, test);
  return place && says_something(run, *place) && is_hit(failed_in(run, *place));
}

bool holds(const TestNumbers& tests, size_t test) {
  return std::ranges::find(tests, test) != tests.end();
}

bool holds_all(const TestNumbers& tests, const TestNumbers& wanted) {
  return std::ranges::all_of(wanted, [&](size_t test) { return holds(tests, test); });
}

TestNumbers behind_last(const TestNumbers& tests, const TestNumbers& list) {
  const auto last = std::ranges::find_if(list.rbegin(), list.rend(),
                                         [&](size_t test) { return holds(tests, test); });
  return {last.base(), list.end()};
}

std::vector<TestNumbers> prefixes_of(const OrderRuns& runs, const OrderSuspect& suspect, bool hit) {
  std::vector<TestNumbers> prefixes;
  for (const OrderedRun& run : runs.all()) {
    const auto place = place_in(run, suspect.test);
    if (place && says_something(run, *place) && suspect.is_hit(failed_in(run, *place)) == hit)
      prefixes.push_back(before(run, *place));
  }
  return prefixes;
}

void find_undoers(OrderRuns& runs, OrderSuspect& suspect, uint32_t seed) {
  UndoerSearch(runs, suspect, seed)();
}

}  // namespace unflake
