#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "search/detect/order_search.h"

namespace unflake {

// A test of a simulated suite: what it needs and what it does to a state that all tests share.
struct SimulatedCase {
  std::string name;
  std::vector<std::string> fails_with;  // all of these
  std::vector<std::string> needs;       // any of these; empty: none
  std::vector<std::string> sets, clears;
  double fails_by_itself = 0;
  bool crashes = false;  // when it fails: whoever comes after it is not reached
};

// A suite whose truth is known.
class SimulatedSuite : public OrderedSuite {
 public:
  enum class Shuffle {
    foreseen,  // as GoogleTest: the order is known before the run, and others do not change it
    seen,      // as Catch2 and doctest: others do not change it
    computed,  // as Boost.Test: each selection has its own, and it is known before the run
    drawn,     // the same where it is not known
  };

  explicit SimulatedSuite(std::vector<SimulatedCase> cases, Shuffle shuffle = Shuffle::seen)
      : cases_(std::move(cases)), shuffle_(shuffle) {
    for (const SimulatedCase& one : cases_) {
      auto test = std::make_shared<Test>();
      test->id = {"suite", one.name};
      tests.push_back(test);
    }
  }

  size_t size() const override { return cases_.size(); }
  bool has_ended() const override { return false; }
  bool keeps_orders() const override {
    return shuffle_ == Shuffle::foreseen || shuffle_ == Shuffle::seen;
  }

  std::optional<std::vector<size_t>> foreseen(const std::vector<size_t>& some,
                                              const Arrangement& how) const override {
    if (shuffle_ == Shuffle::seen || shuffle_ == Shuffle::drawn) return std::nullopt;
    return order_of(some, how);
  }

  std::optional<OrderedRun> run(const std::vector<size_t>& some, const Arrangement& how) override {
    if (how.kind == Arrangement::Kind::reversed || how.kind == Arrangement::Kind::by_name)
      return std::nullopt;
    OrderedRun run{how, {}, {}};
    std::set<std::string> state;
    for (const size_t number : order_of(some, how)) {
      run.order.push_back(number);
      run.outcomes.push_back(outcome_of(cases_[number], state));
      if (cases_[number].crashes && run.outcomes.back().failed()) break;
    }
    return run;
  }

  std::vector<std::shared_ptr<const Test>> tests;

 private:
  std::vector<size_t> order_of(const std::vector<size_t>& some, const Arrangement& how) const {
    std::vector<size_t> order = some;
    if (keeps_orders()) {
      order.resize(cases_.size());
      std::iota(order.begin(), order.end(), size_t{0});
    }
    std::ranges::sort(order);
    std::mt19937 random(how.seed * 1000 + static_cast<unsigned>(order.size()));
    if (how.kind == Arrangement::Kind::shuffled)
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    std::erase_if(order, [&](size_t one) { return std::ranges::find(some, one) == some.end(); });
    return order;
  }

  Outcome outcome_of(const SimulatedCase& one, std::set<std::string>& state) {
    const auto is_there = [&](const std::string& flag) { return state.contains(flag); };
    const bool is_spoilt = !one.fails_with.empty() && std::ranges::all_of(one.fails_with, is_there);
    const bool lacks = !one.needs.empty() && std::ranges::none_of(one.needs, is_there);
    const bool by_chance = std::uniform_real_distribution<>()(chance_) < one.fails_by_itself;
    state.insert(one.sets.begin(), one.sets.end());
    for (const std::string& flag : one.clears) state.erase(flag);
    Outcome outcome;
    outcome.duration = std::chrono::milliseconds(1);
    if (!is_spoilt && !lacks && !by_chance) return outcome;
    outcome.kind = one.crashes ? OutcomeKind::crash : OutcomeKind::fail;
    outcome.failures.push_back({FailureKind::assertion, one.name + ".cc", 1, "", "", "it failed"});
    outcome.signature = signature_of(outcome.failures.front());
    return outcome;
  }

  const std::vector<SimulatedCase> cases_;
  const Shuffle shuffle_;
  std::mt19937 chance_{7};
};

}  // namespace unflake
