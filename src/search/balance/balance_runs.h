#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "search/balance/setting.h"
#include "search/trial/trial_runner.h"

namespace unflake {

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
