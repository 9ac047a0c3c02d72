#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "run/executor.h"
#include "search/schedule/interleaving.h"

namespace unflake {

// A controlled run, and what was asked for.
struct ScheduleRun {
  Schedule schedule;
  ExperimentResult result;

  const Trace& trace() const { return *result.trace; }
  const ControlledRun& controlled() const { return *result.trace->controlled; }
  bool failed() const { return result.outcome.failed() || !controlled().deadlock.empty(); }
  // The same for the same failure: its signature, or where threads wait for each other.
  std::string failure_id() const;
};

struct ScheduleLimits {
  Duration budget{std::chrono::minutes(1)};
  Duration timeout{std::chrono::seconds(60)};
};

// Makes controlled runs, counts them, and keeps to the budget.
class ScheduleRuns {
 public:
  ScheduleRuns(Executor& executor, std::shared_ptr<const Test> test, Plan plan,
               const ScheduleLimits& limits)
      : executor_(executor),
        test_(std::move(test)),
        plan_(std::move(plan)),
        limits_(limits),
        began_(executor.elapsed()) {}

  // None when there can be no more runs: is_over() then tells which of the reasons below it is.
  std::optional<ScheduleRun> run(const Schedule& schedule);

  // Runs in every slot, one after the other, while there is a next one and they are taken.
  using Next = std::function<std::optional<Schedule>()>;
  using Take = std::function<bool(const ScheduleRun&)>;
  void run_each(const Next& next, const Take& take);

  bool is_over() const { return stopped_ || error_ || !why_not_.empty() || left() <= Duration{}; }
  Duration elapsed() const { return executor_.elapsed() - began_; }
  Duration left() const { return limits_.budget - elapsed(); }
  uint64_t count() const { return count_; }
  bool was_stopped() const { return stopped_; }
  const std::optional<Error>& error() const { return error_; }
  // Why this test cannot be controlled; empty: it can.
  const std::string& why_not_controlled() const { return why_not_; }
  // The call because of which equal schedules may give different runs, if any run named one.
  const std::string& not_repeatable() const { return not_repeatable_; }
  // Longest of all runs so far.
  Duration longest() const { return longest_; }

 private:
  Experiment experiment(const Schedule& schedule) const;
  std::optional<ScheduleRun> judged(const Schedule& schedule, ExperimentResult result);

  Executor& executor_;
  std::shared_ptr<const Test> test_;
  Plan plan_;
  ScheduleLimits limits_;
  Duration began_;
  uint64_t count_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
  std::string why_not_;
  std::string not_repeatable_;
  Duration longest_{};
};

}  // namespace unflake
