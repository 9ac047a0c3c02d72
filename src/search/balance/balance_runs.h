#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/balance_report.h"
#include "model/plan.h"
#include "search/trial/trial_runner.h"
#include "stats/rates.h"
#include "util/time.h"

namespace unflake {

// What each of the searched values is set to, in their order.
using Setting = std::vector<Duration>;

Duration scaled(Duration value, double factor);
double to_ms(Duration duration);
Duration from_ms(double ms);

// What the test itself asks for. Times that are computed at run time are scaled together, and the
// longest of them stands for all.
Setting own_setting(const std::vector<TimeValue>& values);

// Whether a run with this is other than one with the test's own time.
bool is_set(const TimeValue& value, Duration to);

// A plan under which the test is given these times instead of its own.
Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting);

Conditions conditions_for(LoadLevel load, int cores);

// To a value that reads well in source code: two digits where that adds at most 1 %, else whole
// milliseconds from 40 on, else three digits.
inline Duration round_up(Duration value) {
  if (value <= Duration::zero()) return Duration::zero();
  const auto exact = static_cast<double>(value.count());
  const auto to_unit = [&](double unit) { return std::ceil(exact / unit - 1e-9) * unit; };
  const double first_digit = std::pow(10, std::floor(std::log10(exact)));
  const double two_digits = to_unit(std::max(1.0, first_digit / 10));
  const double otherwise =
      exact >= 40'000 ? to_unit(1000) : to_unit(std::max(1.0, first_digit / 100));
  return Duration(std::llround(two_digits <= exact * 1.01 ? two_digits : otherwise));
}

// A run that was skipped tested nothing, and is no better than one that failed.
inline bool is_bad(const Outcome& outcome) {
  return outcome.failed() || outcome.kind == OutcomeKind::skipped;
}

// How a test fails by itself, with the times that it asks for.
struct OwnFailures {
  Count failures;
  std::set<std::string> signatures;

  // As high as it may well be: a setting must not be refused because the test failed less often
  // than it usually does while that was measured.
  double rate() const;
  void add(const Outcome& outcome);
};

// Whether a setting makes a test fail more often than it does anyway and than is tolerated, by as
// many runs as that takes.
class RateCheck {
 public:
  // Shares of the runs that would be good otherwise.
  struct Limits {
    double tolerated = 0.001;
    double refused = 0.5;  // in between either verdict is right
    double error = 0.05;
    int most_runs = 1000;
  };
  RateCheck(const OwnFailures& own, const Limits& limits);

  void add(const Outcome& outcome);
  TriedSetting::Verdict verdict() const;
  double refused_rate() const { return refused_rate_; }

 private:
  const OwnFailures& own_;
  const double refused_rate_;
  SequentialTest all_;  // failures of any kind, against the rate that the test has anyway
  SequentialTest new_;  // failures that the test does not have by itself, against none
};

struct BalanceLimits {
  Duration budget{std::chrono::minutes(10)};
  Duration timeout{std::chrono::minutes(10)};     // of the first runs
  Duration time_offset{std::chrono::seconds(2)};  // what a run may take beyond what is expected
  int cores = 2;
  int at_once = 1;
};

// A run whose trace is kept, for what it tells about how long things take.
struct KeptRun {
  std::shared_ptr<const Trace> trace;
  bool failed = false;
  LoadLevel load = LoadLevel::idle;
  Setting setting;
};

// What the runs came to, by setting and load. A copy is what to go back to when the runs after it
// turn out to say nothing.
class SettingCounts {
 public:
  // In `used`, which of the changed values the run asked for.
  void add(const Outcome& outcome, const Setting& setting, LoadLevel load, bool is_own,
           const std::vector<bool>& used);
  void judge(const Setting& setting, LoadLevel load, TriedSetting::Verdict verdict,
             double refused_rate);

  Count failures(const Setting& setting, LoadLevel load) const;
  TriedSetting of(const Setting& setting, LoadLevel load) const;
  std::vector<TriedSetting> all() const;
  // In how many of them the value was asked for, and changed.
  int used(const Setting& setting, LoadLevel load, size_t value) const;
  // With the times that the test asks for itself.
  const OwnFailures& own(LoadLevel load) { return own_[load]; }
  const std::map<std::string, int>& own_headlines() const { return own_headlines_; }

 private:
  using Key = std::pair<LoadLevel, Setting>;
  struct Tally {
    Count failures;
    int new_failures = 0;
    std::vector<double> passing_ms;
    std::vector<int> used;  // runs in which the changed time was asked for, for each value
    TriedSetting::Verdict verdict = TriedSetting::Verdict::undecided;
    double refused_rate = 0;
  };
  void add_own(const Outcome& outcome, LoadLevel load);
  static TriedSetting described(const Key& key, const Tally& tally);
  const Tally* find(const Setting& setting, LoadLevel load) const;

  std::map<Key, Tally> tallies_;
  std::map<LoadLevel, OwnFailures> own_;
  std::map<std::string, int> own_headlines_;
};

// Makes the runs of a search for time values, each of a setting at a load.
class BalanceRuns {
 public:
  BalanceRuns(Executor& executor, std::shared_ptr<const Test> test, const Plan& plan,
              const BalanceLimits& limits, EventStream& events);

  // The values whose settings the following runs are about. What system libraries ask for
  // themselves is changed only where it is looked for.
  void search(const std::vector<TimeValue>& values, bool with_system_calls = false);

  // One run without changed times. Nothing when the search is over.
  std::optional<ExperimentResult> look(const Plan& plan, TrialEnded::Purpose purpose);

  // Runs until `enough` says so or `most` were made. False: the search was over before.
  using Enough = std::function<bool(const Outcome&)>;
  bool run(const Setting& setting, LoadLevel load, int most, const Enough& enough);
  bool run(const Setting& setting, LoadLevel load, int most);
  void run_at_once(int number) { limits_.at_once = number; }

  bool over() const { return runner_.has_ended() || runner_.budget().is_spent(); }
  const TrialRunner& runner() const { return runner_; }
  void say(const std::string& text) { runner_.teller().say(text); }

  SettingCounts& counts() { return counts_; }
  const SettingCounts& counts() const { return counts_; }
  const std::vector<KeptRun>& kept() const { return kept_; }
  // What was counted and kept so far, and back to that.
  struct Mark {
    SettingCounts counts;
    size_t kept = 0;
  };
  Mark mark() const { return {counts_, kept_.size()}; }
  void go_back_to(Mark mark);

 private:
  Duration timeout(const Conditions& conditions, Duration extra = Duration::zero()) const;
  Duration longer_by(const Setting& setting) const;
  bool has_run(const ExperimentResult& result);
  void take(const ExperimentResult& result, const Setting& setting, LoadLevel load);
  std::vector<bool> used_in(const ExperimentResult& result, const Setting& setting) const;
  void keep(const ExperimentResult& result, const Setting& setting, LoadLevel load);

  TrialRunner runner_;
  Plan plan_;
  BalanceLimits limits_;
  std::vector<TimeValue> values_;
  SettingCounts counts_;
  std::vector<KeptRun> kept_;
  size_t kept_events_ = 0;
  Duration longest_{};  // of the runs that ended by themselves
};

}  // namespace unflake
