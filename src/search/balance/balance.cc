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

namespace {

std::vector<std::string> by_frequency(const std::map<std::string, int>& headlines) {
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [headline, runs] : headlines) order.emplace_back(-runs, headline);
  std::ranges::sort(order);
  std::vector<std::string> result;
  for (auto& [runs, headline] : order) result.push_back(std::move(headline));
  return result;
}

}  // namespace

void BalanceSearch::write() {
  for (TriedSetting& tried : runs_.all()) {
    tried.is_final = is_settled_ && tried.values == final_ && final_ != own_;
    tried.is_careful = is_settled_ && tried.values == careful_ && careful_ != final_ &&
                       tried.load == LoadLevel::idle;
    (tried.values == own_ ? report_.base : report_.tried).push_back(std::move(tried));
  }
  mark_front(report_.tried);
  if (ran_short_ && is_settled_)
    report_.notes.push_back(
        "time ran short before the shortest values were located, and the rest of it was for the "
        "proof of what held by then: a larger --budget may find shorter ones");
  report_.base_failures = by_frequency(runs_.own_headlines());
  for (const size_t i : searched_) describe(i);
}

void BalanceSearch::describe(size_t value) {
  BalancedValue& balanced = report_.values[value];
  balanced.proposed = final_[value];
  balanced.is_unneeded = is_changed(value) && final_[value] == Duration::zero();
  using Change = BalancedValue::Change;
  if (!is_changed(value))
    balanced.change = Change::keep;
  else
    balanced.change = final_[value] < own_[value] ? Change::shorten : Change::raise;
  for (const auto& [load, setting] : at_load_)
    balanced.loads.push_back({load, setting[value], fails_at(load, value)});
  if (balanced.change == Change::keep) balanced.reason = why_kept(value);
}

// When several went up together it is not known which of them was too short.
std::optional<Duration> BalanceSearch::fails_at(LoadLevel load, size_t value) const {
  if (load == LoadLevel::idle) return brackets_[value].fails;
  const auto failed = fails_at_load_.find(load);
  if (failed == fails_at_load_.end()) return std::nullopt;
  const Setting& held = at_load_.at(load);
  const auto rose =
      std::ranges::count_if(searched_, [&](size_t i) { return failed->second[i] != held[i]; });
  if (rose != 1 || failed->second[value] == held[value]) return std::nullopt;
  return failed->second[value];
}

std::string BalanceSearch::why_kept(size_t value) const {
  if (const auto known = why_kept_.find(value); known != why_kept_.end()) return known->second;
  if (is_settled_) return "no shorter one held";
  if (holding_[value] == own_[value]) return "the search was over before it could tell";
  const Count seen = runs_.failures(holding_, LoadLevel::idle);
  return fmt::format("the search was over before {} was proven, where {} of {} runs failed",
                     format_duration(holding_[value]), seen.hits, seen.runs);
}

namespace {

using namespace std::chrono_literals;

constexpr double close_enough = 1.1;
constexpr Duration smallest = 1ms;

}  // namespace

// FaTB's search: a fixed number of runs for each value, half the way down when none of them failed
// and half the way back up when one did. The paper halves towards zero also below a value that has
// failed, and so never comes to an end; here what has failed bounds it.
void BalanceSearch::halve_all(const std::vector<size_t>& members) {
  for (const size_t i : members)
    if (!runs_.over()) halve(i);
  for (const size_t i : members) final_[i] = std::min(round_up(holding_[i]), own_[i]);
  is_settled_ = !runs_.over();
}

void BalanceSearch::halve(size_t value) {
  Bracket& bracket = brackets_[value];
  Duration below = bracket.fails.value_or(options_.from.value_or(Duration::zero()));
  while (!runs_.over()) {
    Setting tried = holding_;
    tried[value] = (below + bracket.holds) / 2;
    if (tried[value] < smallest) return;
    if (!runs_.run(tried, LoadLevel::idle, options_.fatb_runs)) return;
    const Count seen = runs_.failures(tried, LoadLevel::idle);
    tell(tried, LoadLevel::idle, seen.hits, seen.runs);
    runs_.judge(tried, LoadLevel::idle, seen.hits > 0 ? Verdict::fails : Verdict::holds, 0);
    if (seen.hits > 0) {
      bracket.fails = tried[value];
    } else {
      bracket.holds = tried[value];
      holding_ = tried;
    }
    below = bracket.fails.value_or(Duration::zero());
    if (bracket.fails && static_cast<double>(bracket.holds.count()) <=
                             static_cast<double>(bracket.fails->count()) * close_enough)
      return;
  }
}

}  // namespace unflake
