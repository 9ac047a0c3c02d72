#pragma once

#include <functional>
#include <map>
#include <string>

#include "search/schedule/portfolio.h"
#include "search/schedule/schedule_runs.h"
#include "stats/rates.h"

namespace unflake {

// How a test fares under many sampled schedules: exchanges of threads at calls and at memory
// accesses, nobody late at first, and later and later up to a bound.
class SampledSchedules {
 public:
  struct Options {
    int most = 1000;
    Duration budget{std::chrono::minutes(1)};
    Duration timeout{std::chrono::seconds(60)};
    // A thread may be as late, and the test may see this much more time pass than without: what
    // takes longer is no failure of a machine that works.
    Duration latest{std::chrono::seconds(1)};
    uint64_t seed = 1;
    int at_once = 1024;  // as the executor has slots
    bool accesses = true;
  };
  // A run that failed, and whether what it took is within the bound.
  using Judge = std::function<bool(const ExperimentResult& failing)>;

  SampledSchedules(TrialRunner& runner, Plan plan, const Options& options);

  // Until `enough` says so, or all are made. Every run within the bound is told.
  using Take = std::function<bool(const ExperimentResult&)>;
  void operator()(const Take& take);

  int made() const { return made_; }
  // Failed when somebody was later than the bound: these were not told.
  int too_late() const { return too_late_; }
  // Why there were none; empty: the test was under control.
  const std::string& why_not() const { return runs_.why_not_controlled(); }
  const std::string& not_repeatable() const { return runs_.not_repeatable(); }
  size_t levels() const { return levels_.size(); }

 private:
  bool add_levels();
  void add_access_levels();
  void add_level(const ScheduleProfile& profile, const ScheduleLevel& level);
  bool is_within_bound(const ScheduleRun& run) const;

  const Options options_;
  ScheduleRuns runs_;
  std::vector<Portfolio> levels_;
  Duration undisturbed_{};  // virtual time of a run in which nobody is late
  int made_ = 0;
  int too_late_ = 0;
};

}  // namespace unflake
