#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/detect_report.h"
#include "model/outcome.h"
#include "model/plan.h"

namespace unflake {

// What a run of tests, one after the other, showed. Tests are numbers of a suite.
struct OrderedRun {
  Arrangement arrangement;
  std::vector<size_t> order;      // of those that were seen
  std::vector<Outcome> outcomes;  // of each
};

// A suite that can be run in different orders: all of it, or some of its tests.
class OrderedSuite {
 public:
  virtual ~OrderedSuite() = default;
  virtual size_t size() const = 0;
  // Whether tests that are left out do not change the order of the others.
  virtual bool keeps_orders() const = 0;
  // In which order these would run, where that can be known.
  virtual std::optional<std::vector<size_t>> foreseen(const std::vector<size_t>& tests,
                                                      const Arrangement& how) const = 0;
  // More than these run where they need others. Nothing: they cannot be arranged so, or
  // has_ended().
  virtual std::optional<OrderedRun> run(const std::vector<size_t>& tests,
                                        const Arrangement& how) = 0;
  // No run can be made any more.
  virtual bool has_ended() const = 0;
};

// Makes the runs and remembers them.
class OrderRuns {
 public:
  OrderRuns(OrderedSuite& suite, int64_t most_test_runs)
      : suite_(suite), most_test_runs_(most_test_runs) {}

  size_t tests() const { return suite_.size(); }
  bool has_ended() const { return suite_.has_ended() || test_runs_ >= most_test_runs_; }
  int processes() const { return processes_; }
  int64_t test_runs() const { return test_runs_; }

  // One that does not count as a run of all tests.
  std::optional<OrderedRun> make(const std::vector<size_t>& tests, const Arrangement& how);
  // All tests. Whoever was not reached, because another one ended the process, is run after it.
  bool make_all(const Arrangement& how);

  const std::vector<OrderedRun>& all() const { return runs_; }
  const std::vector<Arrangement>& arrangements() const { return arrangements_; }

  // Runs of just these, in this order: in an arrangement that was seen to have it, or in others
  // until one has. A run in another order is no answer; but the first `free` may change places.
  std::optional<OrderedRun> in_order(const std::vector<size_t>& order, size_t free = 0);

  // Shuffled orders of these, with seeds from the given one on.
  std::vector<Arrangement> draws_with_last(const std::vector<size_t>& tests, size_t last,
                                           uint32_t seed, size_t most) const;

  bool keeps_orders() const { return suite_.keeps_orders(); }
  bool can_foresee(const std::vector<size_t>& order) const {
    return suite_.foreseen(order, {Arrangement::Kind::shuffled, 1}).has_value();
  }
  // Whether a run of all tests had them in this order.
  bool has_seen(const std::vector<size_t>& order) const {
    return seen_arrangement(order).has_value();
  }

  // The part of all pairs that ran in both orders.
  double pairs_seen() const;
  int64_t pairs_in_both_orders() const { return both_; }

 private:
  std::optional<OrderedRun> try_arrangement(const std::vector<size_t>& order, size_t free,
                                            const Arrangement& how);
  std::optional<Arrangement> seen_arrangement(const std::vector<size_t>& order) const;
  void count_pairs(const OrderedRun& run);

  OrderedSuite& suite_;
  const int64_t most_test_runs_;
  std::vector<OrderedRun> runs_;
  std::vector<Arrangement> arrangements_;  // of all tests
  std::map<std::vector<size_t>, Arrangement> found_;
  std::vector<std::vector<bool>> is_before_;  // in a run of all tests
  int64_t both_ = 0;
  int processes_ = 0;
  int64_t test_runs_ = 0;
};

// Where a test stands in a run; nothing: it was not seen.
std::optional<size_t> place_in(const OrderedRun& run, size_t test);
std::vector<size_t> before(const OrderedRun& run, size_t place);
// Whether it passed or failed there, and not something in between.
bool says_something(const OrderedRun& run, size_t place);
bool failed_in(const OrderedRun& run, size_t place);

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
// What comes after the last of these.
TestNumbers behind_last(const TestNumbers& tests, const TestNumbers& list);

// The tests before it in each run of all tests in which it was hit, or was not.
std::vector<TestNumbers> prefixes_of(const OrderRuns& runs, const OrderSuspect& suspect, bool hit);

// Looks for tests that, between the makers of the last relation and the test, undo what those do.
// New orders are shuffled with seeds from the given one on.
void find_undoers(OrderRuns& runs, OrderSuspect& suspect, uint32_t seed);

struct OrderOptions {
  uint32_t seed = 1;      // of the first shuffled order
  int least_orders = 16;  // of all tests, shuffled
  int most_orders = 40;   // even when some pairs still ran in one order only
  double most_suite_runs = 60;
  // Told what is found, as it is found.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// Looks for tests whose outcome depends on what ran before them, makes the orders small, and
// confirms each by fresh runs: what iDFlakies and iFixFlakies do. `tests` are those of the suite.
OrderReport look_for_order_dependence(OrderedSuite& suite,
                                      const std::vector<std::shared_ptr<const Test>>& tests,
                                      const OrderOptions& options);

}  // namespace unflake
