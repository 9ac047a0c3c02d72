#include "search/detect/order_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/trial/trial_runner.h"
#include "util/text.h"

namespace unflake {
namespace {

using Kind = OrderRelation::Kind;

constexpr size_t most_singles = 24;  // of those that nothing speaks against
constexpr size_t first_singles = 6;  // before several are thought of
// Orders that are tried where a selection draws its own; more of a few tests, as each takes less.
constexpr size_t most_draws = 6;
constexpr size_t most_short_draws = 16;
constexpr size_t test_runs_of_draws = 200;
constexpr size_t few_makers = 4;  // that are told apart one by one
constexpr double enough_pairs = 0.995;
constexpr int most_in_vain = 3;  // orders that show no new pair
constexpr size_t most_relations_of_test = 12;

class OrderSearch {
 public:
  OrderSearch(OrderedSuite& suite, const std::vector<std::shared_ptr<const Test>>& tests,
              const OrderOptions& options)
      : tests_(tests),
        options_(options),
        runs_(suite, static_cast<int64_t>(options.most_suite_runs *
                                          static_cast<double>(std::max<size_t>(1, tests.size())))),
        alone_(tests.size()) {}

  OrderReport operator()() {
    report_.tests = tests_.size();
    if (tests_.size() >= 2) look();
    report_.orders = static_cast<int>(runs_.arrangements().size());
    report_.pairs_seen = runs_.pairs_seen();
    report_.processes = runs_.processes();
    report_.test_runs = runs_.test_runs();
    report_.is_complete = !runs_.has_ended();
    return std::move(report_);
  }

 private:
  void look() {
    run_alone();
    run_orders();
    const std::vector<OrderSuspect> suspects = find_suspects();
    candidates_ = static_cast<int>(suspects.size());
    for (const OrderSuspect& suspect : suspects) {
      if (runs_.has_ended()) return;
      investigate(suspect);
    }
  }

  void run_alone() {
    for (size_t test = 0; test < tests_.size(); ++test) (void)add_alone(test);
  }

  std::optional<bool> add_alone(size_t test) {
    const auto run = runs_.make({test}, {});
    if (!run) return std::nullopt;
    const auto place = place_in(*run, test);
    if (!place || !says_something(*run, *place)) return std::nullopt;
    alone_[test].add(failed_in(*run, *place));
    if (failed_in(*run, *place)) failures_[test] = run->outcomes[*place];
    return failed_in(*run, *place);
  }

  // In the order of the listing, backwards and by name where the suite can do so, then shuffled
  // until every pair ran in both orders, or more orders show no more of them.
  void run_orders() {
    for (const auto kind :
         {Arrangement::Kind::listed, Arrangement::Kind::reversed, Arrangement::Kind::by_name})
      runs_.make_all({kind, 0});
    int in_vain = 0;
    for (int i = 0; i < options_.most_orders && !runs_.has_ended(); ++i) {
      const bool are_enough = runs_.pairs_seen() >= enough_pairs || in_vain >= most_in_vain;
      if (i >= options_.least_orders && are_enough) break;
      const int64_t before = runs_.pairs_in_both_orders();
      const auto seed = static_cast<uint32_t>(options_.seed + static_cast<uint32_t>(i));
      if (!runs_.make_all({Arrangement::Kind::shuffled, seed})) break;
      in_vain = runs_.pairs_in_both_orders() > before ? 0 : in_vain + 1;
    }
    options_.say(fmt::format("{} tests ran in {} orders, {:.0f} % of all pairs both ways round",
                             tests_.size(), runs_.arrangements().size(), 100 * runs_.pairs_seen()));
  }

  std::vector<OrderSuspect> find_suspects() const {
    std::vector<OrderSuspect> suspects;
    for (size_t test = 0; test < tests_.size(); ++test) {
      if (alone_[test].runs == 0) continue;
      OrderSuspect suspect{test, alone_[test].hits == 0 ? Kind::victim : Kind::brittle, {}};
      if (!prefixes_of(runs_, suspect, true).empty()) suspects.push_back(suspect);
    }
    return suspects;
  }

  static bool is_explained(const OrderSuspect& suspect, const TestNumbers& prefix) {
    return std::ranges::any_of(suspect.found, [&](const OrderSuspect::Found& found) {
      if (!holds_all(prefix, found.makers)) return false;
      const auto after = behind_last(found.makers, prefix);
      return std::ranges::none_of(after, [&](size_t t) { return holds(found.undoers, t); });
    });
  }

  std::vector<TestNumbers> unexplained(const OrderSuspect& suspect) const {
    auto hits = prefixes_of(runs_, suspect, true);
    std::erase_if(hits, [&](const auto& prefix) { return is_explained(suspect, prefix); });
    std::ranges::sort(hits, {}, [](const auto& prefix) { return prefix.size(); });
    return hits;
  }

  void investigate(OrderSuspect suspect) {
    while (suspect.found.size() < most_relations_of_test && !runs_.has_ended()) {
      const auto hits = unexplained(suspect);
      if (hits.empty()) break;
      const auto makers = makers_in(suspect, hits);
      if (!makers || !take(suspect, *makers)) break;
    }
    if (suspect.found.empty()) return add_flake(suspect);
    for (const size_t maker : not_exonerated(suspect))
      if (is_made_by(suspect, {maker}) && !take(suspect, {maker})) break;
  }

  void add_flake(const OrderSuspect& suspect) {
    if (runs_.has_ended()) return;
    Count in_orders;
    for (const OrderedRun& run : runs_.all()) {
      const auto place = place_in(run, suspect.test);
      if (place && says_something(run, *place)) in_orders.add(failed_in(run, *place));
    }
    report_.flakes.push_back({tests_[suspect.test], alone_[suspect.test], in_orders});
  }

  // Whether the test is hit after just these.
  bool is_made_by(const OrderSuspect& suspect, TestNumbers order) {
    order.push_back(suspect.test);
    const auto run = runs_.in_order(order);
    return run && suspect.is_hit_in(*run);
  }

  // The same of a list whose order may not come back, because the suite draws a new one for each
  // selection: those before the test in any run with a hit.
  std::optional<TestNumbers> hit_behind(const OrderSuspect& suspect, TestNumbers order) {
    order.push_back(suspect.test);
    if (const auto run = runs_.in_order(order)) {
      order.pop_back();
      return suspect.is_hit_in(*run) ? std::optional(order) : std::nullopt;
    }
    std::ranges::sort(order);
    const size_t most = runs_.can_foresee(order)
                            ? most_draws
                            : std::max(most_draws, test_runs_of_draws / order.size());
    for (const Arrangement& how : runs_.draws_with_last(order, suspect.test, options_.seed,
                                                        std::min(most, most_short_draws))) {
      const auto run = runs_.make(order, how);
      if (run && suspect.is_hit_in(*run)) return before(*run, *place_in(*run, suspect.test));
    }
    return std::nullopt;
  }

  // Those that were there in most runs with a hit and in few without, one by one; then those that
  // were there in all of them together; then all of one run, made smaller and smaller.
  std::optional<TestNumbers> makers_in(const OrderSuspect& suspect,
                                       const std::vector<TestNumbers>& hits) {
    const TestNumbers ranked = ranked_makers(suspect, hits);
    for (size_t i = 0; i < ranked.size() && i < first_singles; ++i)
      if (is_made_by(suspect, {ranked[i]})) return TestNumbers{ranked[i]};
    TestNumbers common = hits.front();
    for (const auto& prefix : hits)
      std::erase_if(common, [&](size_t test) { return !holds(prefix, test); });
    if (!runs_.keeps_orders()) common = narrowed(suspect, std::move(common));
    if (!common.empty() && common.size() < hits.front().size())
      if (auto list = comes_back(suspect, common)) return minimised(suspect, *list);
    for (size_t i = 0; i < hits.size() && i < 2; ++i)
      if (auto list = comes_back(suspect, hits[i])) return minimised(suspect, *list);
    return std::nullopt;
  }

  // Where a selection draws its own order: those that came before the test in each further hit.
  TestNumbers narrowed(const OrderSuspect& suspect, TestNumbers list) {
    uint32_t seed = options_.seed + static_cast<uint32_t>(options_.most_orders);
    for (size_t in_vain = 0; list.size() > few_makers && in_vain < most_short_draws; ++in_vain) {
      TestNumbers all = list;
      all.push_back(suspect.test);
      std::ranges::sort(all);
      const auto run = runs_.make(all, {Arrangement::Kind::shuffled, ++seed});
      if (!run) break;
      if (!suspect.is_hit_in(*run)) continue;
      list = before(*run, *place_in(*run, suspect.test));
      in_vain = 0;
    }
    return list;
  }

  // Twice: a flake of another kind may hit once.
  std::optional<TestNumbers> comes_back(const OrderSuspect& suspect, const TestNumbers& prefix) {
    const auto once = hit_behind(suspect, prefix);
    return once && !once->empty() ? hit_behind(suspect, *once) : std::nullopt;
  }

  TestNumbers ranked_makers(const OrderSuspect& suspect,
                            const std::vector<TestNumbers>& hits) const {
    std::map<size_t, double> score;
    const auto misses = prefixes_of(runs_, suspect, false);
    for (const auto& prefix : hits)
      for (const size_t test : prefix) score[test] += 1.0 / static_cast<double>(hits.size());
    for (const auto& prefix : misses)
      for (const size_t test : prefix)
        if (score.contains(test)) score[test] -= 1.0 / static_cast<double>(misses.size());
    TestNumbers ranked;
    for (const auto& [test, points] : score) ranked.push_back(test);
    std::ranges::stable_sort(ranked, std::greater<>(), [&](size_t test) { return score[test]; });
    return ranked;
  }

  // Delta debugging: parts of the list, then what is left without a part, finer each time.
  TestNumbers minimised(const OrderSuspect& suspect, TestNumbers list) {
    size_t parts = 2;
    while (list.size() >= 2 && !runs_.has_ended()) {
      parts = std::min(parts, list.size());
      if (auto smaller = smaller_list(suspect, list, parts)) {
        parts = smaller->size() * parts <= list.size() ? 2 : std::max<size_t>(2, parts - 1);
        list = std::move(*smaller);
      } else if (parts == list.size()) {
        break;
      } else {
        parts *= 2;
      }
    }
    return list;
  }

  std::optional<TestNumbers> smaller_list(const OrderSuspect& suspect, const TestNumbers& list,
                                          size_t parts) {
    for (const bool without : {false, true}) {
      if (without && parts == 2) break;
      for (size_t part = 0; part < parts; ++part) {
        TestNumbers tried;
        for (size_t i = 0; i < list.size(); ++i)
          if ((i * parts / list.size() == part) != without) tried.push_back(list[i]);
        if (tried.empty()) continue;
        if (auto hit = hit_behind(suspect, tried); hit && !hit->empty()) return hit;
      }
    }
    return std::nullopt;
  }

  // A test that stood before it without a hit, and after which nothing is known to undo.
  TestNumbers not_exonerated(const OrderSuspect& suspect) const {
    TestNumbers undoers, left;
    for (const auto& found : suspect.found)
      undoers.insert(undoers.end(), found.undoers.begin(), found.undoers.end());
    std::set<size_t> cleared{suspect.test};
    for (const auto& prefix : prefixes_of(runs_, suspect, false)) {
      const auto last = std::ranges::find_if(prefix.rbegin(), prefix.rend(),
                                             [&](size_t test) { return holds(undoers, test); });
      cleared.insert(last.base(), prefix.end());
    }
    for (const auto& found : suspect.found)
      if (found.makers.size() == 1) cleared.insert(found.makers.front());
    for (size_t test = 0; test < tests_.size() && left.size() < most_singles; ++test)
      if (!cleared.contains(test)) left.push_back(test);
    return left;
  }

  // Confirms a relation and looks for who undoes it. False: it is none.
  bool take(OrderSuspect& suspect, const TestNumbers& makers) {
    OrderRelation relation;
    relation.kind = suspect.kind;
    relation.test = tests_[suspect.test];
    if (!confirm(suspect, makers, relation)) return false;
    suspect.found.push_back({makers, {}});
    find_undoers(runs_, suspect, options_.seed + static_cast<uint32_t>(options_.most_orders));
    for (const size_t maker : makers) relation.makers.push_back(tests_[maker]);
    for (const size_t undoer : suspect.found.back().undoers)
      relation.undoers.push_back(tests_[undoer]);
    options_.say(sentence(relation));
    report_.relations.push_back(std::move(relation));
    return true;
  }

  bool confirm(const OrderSuspect& suspect, TestNumbers order, OrderRelation& relation) {
    order.push_back(suspect.test);
    Count alone;
    Confirmation::Runs runs;
    runs.with_plan = [&]() -> std::optional<bool> {
      const auto run = runs_.in_order(order);
      const auto place = run ? place_in(*run, suspect.test) : std::nullopt;
      if (!place || !says_something(*run, *place)) return std::nullopt;
      relation.arrangement = run->arrangement;
      const bool failed = failed_in(*run, *place);
      relation.behind_makers.add(failed);
      if (failed) failures_[suspect.test] = run->outcomes[*place];
      return suspect.is_hit(failed);
    };
    runs.without_plan = [&](int wanted) {
      while (relation.alone.runs < wanted) {
        const auto failed = add_alone(suspect.test);
        if (!failed) break;
        relation.alone.add(*failed);
        alone.add(suspect.is_hit(*failed));
      }
      return alone;
    };
    runs.has_ended = [&] { return runs_.has_ended(); };
    Confirmation confirmation(candidates_, static_cast<int>(report_.relations.size()));
    if (confirmation(runs) != Confirmation::Answer::holds) return false;
    const Outcome& failing = failures_[suspect.test];
    relation.signature = failing.signature;
    if (!failing.failures.empty()) relation.failure = failing.failures.front();
    return true;
  }

  static std::string sentence(const OrderRelation& relation) {
    std::vector<std::string> makers;
    for (const auto& maker : relation.makers) makers.push_back(printable(maker->id.name));
    const bool is_victim = relation.kind == Kind::victim;
    return fmt::format("{} {} after {}", printable(relation.test->id.name),
                       is_victim ? "fails" : "passes only", join(makers, " and "));
  }

  const std::vector<std::shared_ptr<const Test>>& tests_;
  const OrderOptions& options_;
  OrderRuns runs_;
  std::vector<Count> alone_;
  std::map<size_t, Outcome> failures_;
  int candidates_ = 0;
  OrderReport report_;
};

}  // namespace

OrderReport look_for_order_dependence(OrderedSuite& suite,
                                      const std::vector<std::shared_ptr<const Test>>& tests,
                                      const OrderOptions& options) {
  return OrderSearch(suite, tests, options)();
}

}  // namespace unflake
