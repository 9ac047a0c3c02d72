#include "search/detect/suite_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "suite/program.h"
#include "util/text.h"

namespace unflake {
namespace {

bool has_own_process(const Test& test) {
  return test.is_entry || test.framework == Framework::ctest ||
         test.framework == Framework::command;
}

// Fixtures have a place of their own, and run with whoever needs them.
std::string why_left_out(const Test& test) {
  if (!test.fixtures.setup.empty() || !test.fixtures.cleanup.empty())
    return "run before and after those that need them";
  if (test.disabled) return test.disabled_reason.empty() ? "disabled" : test.disabled_reason;
  return test.obstacle;
}

bool shares_any(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::ranges::any_of(
      a, [&](const std::string& one) { return std::ranges::find(b, one) != b.end(); });
}

// Whether a suite says that the one has to be over before the other.
bool must_precede(const Test& first, const Test& second) {
  const std::string& name = first.id.name;
  if (std::ranges::find(second.depends, name) != second.depends.end()) return true;
  const Fixtures &a = first.fixtures, &b = second.fixtures;
  return shares_any(a.setup, b.required) || shares_any(a.setup, b.cleanup) ||
         shares_any(a.required, b.cleanup);
}

// The tests and what sets up and cleans up for them.
Tests with_needed(const Tests& some, const Tests& listed) {
  Tests all = some;
  for (size_t i = 0; i < all.size(); ++i)
    for (const auto& other : listed) {
      const Fixtures& needs = all[i]->fixtures;
      const bool is_needed = shares_any(needs.required, other->fixtures.setup) ||
                             shares_any(needs.required, other->fixtures.cleanup);
      if (is_needed && std::ranges::find(all, other) == all.end()) all.push_back(other);
    }
  return all;
}

// A place for each test that does not depend on which others there are.
std::vector<uint64_t> places(const Tests& tests, const Tests& listed, const Arrangement& how) {
  std::vector<uint64_t> all;
  for (const auto& test : tests) {
    const auto at = static_cast<uint64_t>(std::ranges::find(listed, test) - listed.begin());
    std::mt19937_64 random(how.seed * 0x9e3779b97f4a7c15ULL + at);
    random.discard(4);
    all.push_back(how.kind == Arrangement::Kind::shuffled   ? random()
                  : how.kind == Arrangement::Kind::reversed ? listed.size() - at
                                                            : at);
  }
  return all;
}

// By their places, but nobody before what has to precede it.
Tests sequence_of(const Tests& some, const Tests& listed, const Arrangement& how) {
  Tests left = with_needed(some, listed), order;
  if (how.kind == Arrangement::Kind::by_name) {
    std::ranges::sort(left, {}, [](const auto& test) { return test->id.name; });
  } else {
    const auto place = places(left, listed, how);
    std::vector<size_t> by_place(left.size());
    for (size_t i = 0; i < by_place.size(); ++i) by_place[i] = i;
    std::ranges::sort(by_place, {}, [&](size_t i) { return place[i]; });
    Tests sorted;
    for (const size_t i : by_place) sorted.push_back(left[i]);
    left = std::move(sorted);
  }
  while (!left.empty()) {
    auto next = std::ranges::find_if(left, [&](const auto& test) {
      return std::ranges::none_of(
          left, [&](const auto& other) { return other != test && must_precede(*other, *test); });
    });
    if (next == left.end()) next = left.begin();  // they wait for each other: the suite is wrong
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace

bool shares_process(const Test& test) {
  return !has_own_process(test) && !test.command.argv.empty();
}

SuiteOrders::SuiteOrders(Executor& executor, const Tests& wanted, const Tests& listed,
                         const SuiteOrderLimits& limits)
    : executor_(executor), listed_(listed), limits_(limits), budget_(executor, limits.budget) {
  std::map<std::string, int> left_out;
  int kept = 0;
  for (const auto& test : wanted) {
    if (const std::string why = why_left_out(*test); !why.empty()) {
      ++left_out[why];
      continue;
    }
    const Fixtures& fixtures = test->fixtures;
    kept += !test->depends.empty() || !fixtures.required.empty();
    numbers_[test->id] = tests_.size();
    tests_.push_back(test);
  }
  for (const auto& [why, count] : left_out)
    notes_.push_back(
        fmt::format("left out: {} {}, {}", count, count == 1 ? "test" : "tests", printable(why)));
  if (kept > 0)
    notes_.push_back(
        fmt::format("kept as declared: the order of {} {} with DEPENDS or fixtures, against those "
                    "that they name",
                    kept, kept == 1 ? "test" : "tests"));
}

bool SuiteOrders::keeps_orders() const {
  return tests_.empty() || tests_.front()->framework != Framework::boost_test ||
         has_own_process(*tests_.front());
}

Result<TestOrder> SuiteOrders::order_of(const Tests& some, const Tests& listed,
                                        const Arrangement& how) {
  if (some.empty()) return internal_error("there is no test to run");
  if (!has_own_process(*some.front())) return arranged_in_one_process(some, listed, how);
  return in_sequence(sequence_of(some, listed, how));
}

Tests SuiteOrders::chosen(const std::vector<size_t>& tests) const {
  Tests some;
  for (const size_t test : tests) some.push_back(tests_[test]);
  return some;
}

std::optional<std::vector<size_t>> SuiteOrders::foreseen(const std::vector<size_t>& tests,
                                                         const Arrangement& how) const {
  const auto order = order_of(chosen(tests), listed_, how);
  if (!order || (order->is_open && !(order->is_expected && is_as_expected_))) return std::nullopt;
  std::vector<size_t> numbers;
  for (const auto& test : order->all)
    if (const auto number = numbers_.find(test->id);
        number != numbers_.end() && std::ranges::find(tests, number->second) != tests.end())
      numbers.push_back(number->second);
  return numbers;
}

// Ten times what it took before, and what one test may take.
Duration SuiteOrders::limit_for(const TestOrder& order) const {
  Duration expected{};
  for (const auto& test : order.all) {
    const auto known = durations_.find(test->id);
    expected += known == durations_.end() ? limits_.timeout : 10 * known->second;
  }
  return std::min(limits_.timeout + expected, std::max(limits_.timeout, budget_.left()));
}

std::optional<ExperimentResult> SuiteOrders::execute(const TestOrder& order) {
  Experiment experiment{order, {}, limit_for(order)};
  experiment.conditions = limits_.conditions;
  auto result = executor_.run(experiment);
  if (!result) {
    error_ = result.error();
    return std::nullopt;
  }
  if (result->process.end == ProcessResult::End::cancelled) {
    stopped_ = true;
    return std::nullopt;
  }
  return std::move(*result);
}

OrderedRun SuiteOrders::translated(const TestOrder& order, ExperimentResult result,
                                   const Arrangement& how) {
  OrderedRun run{how, {}, {}};
  const auto add = [&](const Test& test, Outcome outcome) {
    if (outcome.kind != OutcomeKind::skipped) {
      Duration& longest = durations_[test.id];
      longest = std::max(longest, outcome.duration);
    }
    const auto number = numbers_.find(test.id);
    if (number == numbers_.end()) return;
    run.order.push_back(number->second);
    run.outcomes.push_back(std::move(outcome));
  };
  if (order.is_single()) {
    add(order.last(), std::move(result.outcome));
    return run;
  }
  if (order.is_expected && !std::ranges::is_sorted(result.sequence)) is_as_expected_ = false;
  for (const size_t number : result.sequence)
    add(*order.all[number], std::move(result.outcomes[number]));
  return run;
}

std::optional<OrderedRun> SuiteOrders::run(const std::vector<size_t>& tests,
                                           const Arrangement& how) {
  const auto order = order_of(chosen(tests), listed_, how);
  if (!order) return std::nullopt;
  auto result = execute(*order);
  const bool has_processes = has_own_process(*tests_.front());
  if (result && !has_started(*result) && has_processes) {
    error_ = usage_error("what processes leave in files for each other cannot be put back here: " +
                             result->process.error,
                         "", "name a test executable, whose tests share a process");
    return std::nullopt;
  }
  if (result && !has_started(*result) && limits_.conditions != Conditions{}) {
    notes_.push_back(fmt::format("files that a run leaves stay there for the next one: {}",
                                 printable(result->process.error)));
    limits_.conditions = {};
    result = execute(*order);
  }
  if (!result) return std::nullopt;
  if (!has_started(*result)) {
    error_ = usage_error(result->process.error);
    return std::nullopt;
  }
  return translated(*order, std::move(*result), how);
}

}  // namespace unflake
