#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "model/events.h"
#include "run/executor.h"
#include "search/balance/setting.h"

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

// Makes the runs of a search, counts them by setting and load, and tells the event stream.
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

  bool over() const;
  bool stopped() const { return stopped_; }
  bool out_of_budget() const { return elapsed() >= limits_.budget; }
  const std::optional<Error>& error() const { return error_; }
  Duration elapsed() const { return executor_.elapsed() - began_; }
  int made() const { return made_; }

  // What the runs with this setting came to so far.
  TriedSetting counted(const Setting& setting, LoadLevel load) const;
  Count failures(const Setting& setting, LoadLevel load) const;
  std::vector<TriedSetting> all() const;
  // In how many of them the value was asked for, and changed.
  int used(const Setting& setting, LoadLevel load, size_t value) const;
  void judge(const Setting& setting, LoadLevel load, TriedSetting::Verdict verdict,
             double refused_rate);
  const std::vector<KeptRun>& kept() const { return kept_; }
  const OwnFailures& own(LoadLevel load) { return counts_.own[load]; }
  const std::map<std::string, int>& own_headlines() const { return counts_.own_headlines; }
  void say(const std::string& text);
  void run_at_once(int number) { limits_.at_once = number; }

  struct Tally {
    Count failures;
    int new_failures = 0;
    std::vector<double> passing_ms;
    std::vector<int> used;  // runs in which the changed time was asked for, for each value
    TriedSetting::Verdict verdict = TriedSetting::Verdict::undecided;
    double refused_rate = 0;
  };
  using Key = std::pair<LoadLevel, Setting>;
  struct Counts {
    std::map<Key, Tally> tallies;
    std::map<LoadLevel, OwnFailures> own;
    std::map<std::string, int> own_headlines;
    size_t kept = 0;
  };
  // To go back to when the runs after it turn out to say nothing.
  const Counts& counts() const { return counts_; }
  void go_back_to(Counts counts);

 private:
  Experiment experiment(const Plan& plan, const Conditions& conditions,
                        Duration extra = Duration::zero()) const;
  Duration longer_by(const Setting& setting) const;
  void take(const ExperimentResult& result, const Setting& setting, LoadLevel load);
  void note_own(const Outcome& outcome, LoadLevel load);
  void note_used(Tally& tally, const ExperimentResult& result, const Setting& setting) const;
  void keep(const ExperimentResult& result, const Setting& setting, LoadLevel load);
  void tell(const Plan& plan, const Conditions& conditions, const ExperimentResult& result,
            TrialEnded::Purpose purpose);
  bool start(const Experiment& experiment);
  std::optional<ExperimentResult> next_finished();
  TriedSetting described(const Key& key, const Tally& tally) const;

  Executor& executor_;
  const std::shared_ptr<const Test> test_;
  Plan plan_;
  BalanceLimits limits_;
  EventStream& events_;
  const Duration began_;
  std::vector<TimeValue> values_;
  Counts counts_;
  std::vector<KeptRun> kept_;
  size_t kept_events_ = 0;
  Duration longest_{};  // of the runs that ended by themselves
  int made_ = 0;
  int running_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
};

}  // namespace unflake
