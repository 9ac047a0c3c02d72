#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/executor.h"
#include "search/detect/order_search.h"
#include "search/trial/trial_runner.h"
#include "suite/adapter.h"

namespace unflake {

// It runs in one process with others of its program, and not as an entry of CTest or a command.
bool shares_process(const Test& test);

struct SuiteOrderLimits {
  Duration budget = std::chrono::minutes(10);
  Duration timeout = std::chrono::seconds(60);  // of one test
  Conditions conditions{};                      // of every run
};

// The tests of a program in one process, or those of a CTest folder one process after the other, in
// the orders that this permits. What a set-up or DEPENDS demands is kept.
class SuiteOrders : public OrderedSuite {
 public:
  // Of the wanted tests, those that can take part do; `listed` are all of the target.
  SuiteOrders(Executor& executor, const Tests& wanted, const Tests& listed,
              const SuiteOrderLimits& limits);

  const Tests& tests() const { return tests_; }
  // What was left out or respected, in words.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::optional<Error>& error() const { return error_; }
  bool stopped() const { return stopped_; }
  // Not possible with the conditions that were asked for; it went on without them.
  const Conditions& conditions() const { return limits_.conditions; }

  size_t size() const override { return tests_.size(); }
  bool keeps_orders() const override;
  std::optional<std::vector<size_t>> foreseen(const std::vector<size_t>& tests,
                                              const Arrangement& how) const override;
  std::optional<OrderedRun> run(const std::vector<size_t>& tests, const Arrangement& how) override;
  bool has_ended() const override { return stopped_ || error_ || budget_.is_spent(); }

  // As a run of these has it; also for whoever replays one.
  static Result<TestOrder> order_of(const Tests& some, const Tests& listed, const Arrangement& how);

 private:
  Tests chosen(const std::vector<size_t>& tests) const;
  Duration limit_for(const TestOrder& order) const;
  OrderedRun translated(const TestOrder& order, ExperimentResult result, const Arrangement& how);
  std::optional<ExperimentResult> execute(const TestOrder& order);

  Executor& executor_;
  const Tests listed_;
  SuiteOrderLimits limits_;
  Tests tests_;
  std::map<TestId, size_t> numbers_;
  std::map<TestId, Duration> durations_;
  std::vector<std::string> notes_;
  const Budget budget_;
  std::optional<Error> error_;
  bool stopped_ = false;
  bool is_as_expected_ = true;  // where the framework's own order is computed
};

}  // namespace unflake
