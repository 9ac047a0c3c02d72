#pragma once

#include <vector>

#include "model/detect_report.h"
#include "search/detect/order_runs.h"

namespace unflake {

// What is known of a test in a search for orders. A hit is the outcome that it does not have alone.
struct OrderSuspect {
  size_t test = 0;
  OrderRelation::Kind kind = OrderRelation::Kind::victim;
  struct Found {
    std::vector<size_t> makers, undoers;
  };
  std::vector<Found> found;

  bool is_hit(bool failed) const { return failed == (kind == OrderRelation::Kind::victim); }
  bool is_hit_in(const OrderedRun& run) const;
};

using TestNumbers = std::vector<size_t>;
bool holds(const TestNumbers& tests, size_t test);
bool holds_all(const TestNumbers& tests, const TestNumbers& wanted);
// What comes behind the last of these.
TestNumbers behind_last(const TestNumbers& tests, const TestNumbers& list);

// The tests before it in each run of all tests in which it was hit, or was not.
std::vector<TestNumbers> prefixes_of(const OrderRuns& runs, const OrderSuspect& suspect, bool hit);

// Looks for tests that, between the makers of the last relation and the test, undo what those do.
// New orders are shuffled with seeds from the given one on.
void find_undoers(OrderRuns& runs, OrderSuspect& suspect, uint32_t seed);

}  // namespace unflake
