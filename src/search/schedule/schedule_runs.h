#pragma once

#include <functional>
#include <optional>
#include <string>

#include "search/schedule/interleaving.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// A controlled run, and what was asked for.
struct ScheduleRun {
  Schedule schedule;
  ExperimentResult result;
  bool hit = false;  // it failed as was wanted

  const Trace& trace() const { return *result.trace; }
  const ControlledRun& controlled() const { return *result.trace->controlled; }
  bool failed() const { return result.outcome.failed(); }
  // The same for the same failure: its signature, or where threads wait for each other.
  std::string failure_id() const;
};

struct ScheduleLimits {
  Duration budget{std::chrono::minutes(1)};
  Duration timeout{std::chrono::seconds(60)};
  int at_once = 1024;  // as the executor has slots
};

// Makes controlled runs, counts them, and keeps to its part of the runner's budget.
class ScheduleRuns {
 public:
  using Purpose = TrialRunner::Purpose;

  ScheduleRuns(TrialRunner& runner, Plan plan, const ScheduleLimits& limits)
      : runner_(runner), plan_(std::move(plan)), limits_(limits), began_(runner.elapsed()) {
    plan_.agent = true;
  }

  // None when there can be no more runs: is_over() then tells which of the reasons below it is.
  std::optional<ScheduleRun> run(const Schedule& schedule, Purpose purpose = Purpose::look,
                                 const std::vector<Intervention>& interventions = {});

  // Runs in every slot, one after the other, while there is a next one and they are taken.
  using Next = std::function<std::optional<Schedule>()>;
  using Take = std::function<bool(const ScheduleRun&)>;
  void run_each(const Next& next, const Take& take);

  bool is_over() const { return runner_.has_ended() || !why_not_.empty() || left() <= Duration{}; }
  Duration elapsed() const { return runner_.elapsed() - began_; }
  Duration left() const { return std::min(limits_.budget - elapsed(), runner_.left()); }
  uint64_t count() const { return count_; }
  // Why this test cannot be controlled; empty: it can.
  const std::string& why_not_controlled() const { return why_not_; }
  // The call because of which equal schedules may give different runs, if any run named one.
  const std::string& not_repeatable() const { return not_repeatable_; }

 private:
  Trial trial(const Schedule& schedule) const;
  std::optional<ScheduleRun> judged(const Schedule& schedule, const Observation& seen);

  TrialRunner& runner_;
  Plan plan_;
  ScheduleLimits limits_;
  Duration began_;
  uint64_t count_ = 0;
  std::string why_not_;
  std::string not_repeatable_;
};

}  // namespace unflake
