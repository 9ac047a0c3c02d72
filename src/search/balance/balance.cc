#include "search/balance/balance.h"

#include <fmt/format.h>

#include "search/balance/balance_search.h"
#include "util/text.h"

namespace unflake {
namespace {

BalancedValue not_searched(const TimeValue& value, std::string why) {
  BalancedValue balanced;
  balanced.value = value;
  balanced.proposed = value.most;
  balanced.reason = std::move(why);
  return balanced;
}

Error unknown_site(const std::vector<std::string>& wanted, const TimeProfile& profile) {
  std::vector<std::string> known;
  for (const TimeValue& value : profile.values) known.push_back(to_string(value.site));
  return usage_error("the test passes no time value there", join(wanted, ", "),
                     known.empty() ? "it passes none at all" : "it does at " + join(known, ", "));
}

class Balancing {
 public:
  Balancing(Executor& executor, std::shared_ptr<const Test> test, const BalanceOptions& options,
            EventStream& events)
      : options_(options),
        test_(std::move(test)),
        runs_(executor, test_, options.plan, options.limits, events) {}

  Result<BalanceReport> operator()() {
    report_.test = test_->id;
    report_.tolerance = options_.tolerance;
    report_.confidence = options_.confidence;
    report_.scale = options_.scale;
    report_.method = options_.fatb ? "fatb" : "sequential";
    runs_.say("runs with the test's own times, to see where they go");
    auto profile = profile_times(runs_, options_.plan, options_.profile_runs);
    if (!profile) return profile.error();
    profile_ = std::move(*profile);
    if (auto chosen = choose(); !chosen) return chosen.error();
    if (can_search()) search();
    if (runs_.error()) return *runs_.error();
    finish();
    return std::move(report_);
  }

 private:
  Result<void> choose() {
    for (const TimeValue& value : profile_.values) {
      std::string why = why_not_searched(value, profile_, options_.sites);
      report_.values.push_back(not_searched(value, why));
      if (why.empty()) searched_.push_back(report_.values.size() - 1);
    }
    if (searched_.empty() && !options_.sites.empty() && !runs_.over())
      return unknown_site(options_.sites, profile_);
    return {};
  }

  bool can_search() {
    const Count& seen = profile_.failures;
    if (profile_.is_skipped) report_.notes.push_back("the test was skipped");
    if (!profile_.is_skipped && seen.runs > 0 && seen.hits == seen.runs)
      report_.notes.push_back(
          fmt::format("all of {} runs failed: a broken test has nothing to balance", seen.runs));
    return report_.notes.empty() && !runs_.over();
  }

  // A test that does not fail by itself and has no time to save is as it should be.
  void search() {
    if (searched_.empty() && profile_.failures.hits == 0) {
      TriedSetting own;
      own.values = own_setting(profile_.values);
      own.failures = profile_.failures;
      own.run_time = profile_.run_time;
      report_.base.push_back(std::move(own));
      return;
    }
    BalanceSearch search(runs_, options_, profile_, report_);
    search(searched_);
  }

  void finish() {
    report_.runs = runs_.made();
    report_.elapsed = runs_.elapsed();
    report_.interrupted = runs_.stopped();
    report_.out_of_budget = !runs_.stopped() && runs_.out_of_budget();
  }

  const BalanceOptions& options_;
  const std::shared_ptr<const Test> test_;
  BalanceRuns runs_;
  TimeProfile profile_;
  BalanceReport report_;
  std::vector<size_t> searched_;  // numbers in report_.values
};

}  // namespace

Result<BalanceReport> balance(Executor& executor, std::shared_ptr<const Test> test,
                              const BalanceOptions& options, EventStream& events) {
  return Balancing(executor, std::move(test), options, events)();
}

}  // namespace unflake
