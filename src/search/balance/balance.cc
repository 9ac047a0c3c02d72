#include "search/balance/balance.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"
#include "search/balance/setting.h"
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
    if (runs_.runner().error()) return *runs_.runner().error();
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
    const TrialRunner& runner = runs_.runner();
    report_.runs = runner.runs();
    report_.elapsed = runner.elapsed();
    report_.interrupted = runner.stopped();
    report_.out_of_budget = !runner.stopped() && runner.budget().is_spent();
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

namespace {

std::vector<std::string> by_frequency(const std::map<std::string, int>& headlines) {
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [headline, runs] : headlines) order.emplace_back(-runs, headline);
  std::ranges::sort(order);
  std::vector<std::string> result;
  for (auto& [runs, headline] : order) result.push_back(std::move(headline));
  return result;
}

class Writing {
 public:
  explicit Writing(BalanceBoard& board) : board_(board) {}
  void write();

 private:
  void describe(size_t value);
  std::optional<Duration> fails_at(LoadLevel load, size_t value) const;
  std::string why_kept(size_t value) const;

  BalanceBoard& board_;
};

void Writing::write() {
  for (TriedSetting& tried : board_.runs.counts().all()) {
    tried.is_final =
        board_.is_settled && tried.values == board_.proposed && board_.proposed != board_.own;
    tried.is_careful = board_.is_settled && tried.values == board_.careful &&
                       board_.careful != board_.proposed && tried.load == LoadLevel::idle;
    (tried.values == board_.own ? board_.report.base : board_.report.tried)
        .push_back(std::move(tried));
  }
  mark_front(board_.report.tried);
  if (board_.ran_short && board_.is_settled)
    board_.report.notes.push_back(
        "time ran short before the shortest values were located, and the rest of it was for the "
        "proof of what held by then: a larger --budget may find shorter ones");
  board_.report.base_failures = by_frequency(board_.runs.counts().own_headlines());
  for (const size_t i : board_.searched) describe(i);
}

void Writing::describe(size_t value) {
  BalancedValue& balanced = board_.report.values[value];
  balanced.proposed = board_.proposed[value];
  balanced.is_unneeded = board_.is_changed(value) && board_.proposed[value] == Duration::zero();
  using Change = BalancedValue::Change;
  if (!board_.is_changed(value))
    balanced.change = Change::keep;
  else
    balanced.change = board_.proposed[value] < board_.own[value] ? Change::shorten : Change::raise;
  for (const auto& [load, setting] : board_.at_load)
    balanced.loads.push_back({load, setting[value], fails_at(load, value)});
  if (balanced.change == Change::keep) balanced.reason = why_kept(value);
}

// When several went up together it is not known which of them was too short.
std::optional<Duration> Writing::fails_at(LoadLevel load, size_t value) const {
  if (load == LoadLevel::idle) return board_.brackets[value].fails;
  const auto failed = board_.fails_at_load.find(load);
  if (failed == board_.fails_at_load.end()) return std::nullopt;
  const Setting& held = board_.at_load.at(load);
  const auto rose = std::ranges::count_if(board_.searched,
                                          [&](size_t i) { return failed->second[i] != held[i]; });
  if (rose != 1 || failed->second[value] == held[value]) return std::nullopt;
  return failed->second[value];
}

std::string Writing::why_kept(size_t value) const {
  if (const auto known = board_.why_kept.find(value); known != board_.why_kept.end())
    return known->second;
  if (board_.is_settled) return "no shorter one held";
  if (board_.holding[value] == board_.own[value]) return "the search was over before it could tell";
  const Count seen = board_.runs.counts().failures(board_.holding, LoadLevel::idle);
  return fmt::format("the search was over before {} was proven, where {} of {} runs failed",
                     format_duration(board_.holding[value]), seen.hits, seen.runs);
}

}  // namespace

void write_report(BalanceBoard& board) {
  Writing(board).write();
}

}  // namespace unflake
