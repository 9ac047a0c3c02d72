#include "search/balance/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "search/balance/balance_runs.h"
#include "search/balance/balance_search.h"
#include "stats/rates.h"
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

namespace {

using Answer = ClaimReport::Answer;

constexpr int first_look = 10;
constexpr int most_more_runs = 1'000'000;

// Looks at 10, 20, 40 ... runs with each value share the error among them.
int number_of_looks(int most) {
  int looks = 1;
  for (int runs = first_look; runs < most; runs *= 2) ++looks;
  return looks;
}

// The highest rate of the other value that so many runs would have told apart from this one, as
// surely as is wanted; none when not even no failures at all would.
std::optional<double> detectable_rate(const Count& with_from, int runs, double error,
                                      double confidence) {
  for (int hits = with_from.hits; hits >= 0; --hits)
    if (fisher_more_often(with_from.hits, with_from.runs, hits, runs) <= error)
      return exact_interval(hits + 1, runs, 2 * confidence - 1).low;
  return std::nullopt;
}

class Claim {
 public:
  Claim(Executor& executor, std::shared_ptr<const Test> test, const ClaimOptions& options,
        EventStream& events)
      : options_(options),
        test_(std::move(test)),
        runs_(executor, test_, options.plan, options.limits, events) {}

  Result<ClaimReport> operator()() {
    report_.test = test_->id;
    report_.from = options_.from;
    report_.to = options_.to;
    report_.confidence = options_.confidence;
    runs_.say("runs with the test's own times, to find the value");
    auto profile = profile_times(runs_, options_.plan, options_.profile_runs);
    if (!profile) return profile.error();
    if (profile->is_skipped) report_.notes.push_back("the test was skipped");
    if (!profile->is_skipped && !runs_.over()) {
      if (auto found = find_value(*profile); !found) return found.error();
      compare_all();
    }
    const TrialRunner& runner = runs_.runner();
    if (runner.error()) return *runner.error();
    report_.runs = runner.runs();
    report_.elapsed = runner.elapsed();
    report_.interrupted = runner.stopped();
    return std::move(report_);
  }

 private:
  Result<void> find_value(const TimeProfile& profile) {
    std::vector<TimeValue> chosen;
    std::vector<std::string> known;
    const std::vector<std::string> sites =
        options_.site.empty() ? std::vector<std::string>{} : std::vector{options_.site};
    for (const TimeValue& value : profile.values) {
      known.push_back(to_string(value.site));
      const bool is_it = sites.empty() ? value.is_project && is_one_of_both(value)
                                       : why_not_searched(value, profile, sites).empty();
      if (is_it) chosen.push_back(value);
    }
    if (chosen.size() != 1)
      return usage_error(
          chosen.empty() ? "no time value of the test is the one that is claimed to be fixed"
                         : fmt::format("{} time values of the test could be meant", chosen.size()),
          options_.site,
          known.empty() ? "the test passes no time values"
                        : "name it with --site: " + join(known, ", "));
    report_.value = chosen.front();
    runs_.search(chosen, chosen.front().is_system_call);
    return {};
  }

  bool is_one_of_both(const TimeValue& value) const {
    return value.is_constant() && (value.most == options_.from || value.most == options_.to);
  }

  // The loads share what time there is.
  void compare_all() {
    for (size_t i = 0; i < options_.loads.size(); ++i) {
      const auto left = static_cast<int64_t>(options_.loads.size() - i);
      until_ =
          runs_.runner().elapsed() + (options_.limits.budget - runs_.runner().elapsed()) / left;
      if (!runs_.over())
        compare(options_.loads[i]);
      else if (!runs_.runner().stopped())
        report_.notes.push_back(
            fmt::format("the time was used up before the load `{}`: give more "
                        "with --budget",
                        to_string(options_.loads[i])));
    }
  }

  // Two directions, several looks and all loads share the error.
  double error_of_a_look() const {
    const auto loads = static_cast<double>(options_.loads.size());
    return (1 - options_.confidence) / (2 * loads * number_of_looks(options_.most_runs));
  }

  void compare(LoadLevel load) {
    ClaimReport::AtLoad at;
    at.load = load;
    const double error = error_of_a_look();
    for (int wanted = first_look;; wanted *= 2) {
      wanted = std::min(wanted, options_.most_runs);
      if (!run_both(load, wanted)) break;
      judge(at, error);
      if (at.answer != Answer::cannot_tell || wanted >= options_.most_runs) break;
    }
    conclude(at, error);
    report_.loads.push_back(at);
    runs_.say(fmt::format("{}: {} of {} failed with {}, {} of {} with {}", to_string(load),
                          at.with_from.hits, at.with_from.runs, format_duration(options_.from),
                          at.with_to.hits, at.with_to.runs, format_duration(options_.to)));
  }

  bool run_both(LoadLevel load, int wanted) {
    while (runs_.counts().failures({options_.to}, load).runs < wanted) {
      if (!runs_.run({options_.from}, load, 1) || !runs_.run({options_.to}, load, 1)) return false;
      if (runs_.runner().elapsed() < until_) continue;
      report_.notes.push_back(
          fmt::format("the time was used up at the load `{}` after {} runs with each value: give "
                      "more with --budget",
                      to_string(load), runs_.counts().failures({options_.to}, load).runs));
      return false;
    }
    return true;
  }

  void judge(ClaimReport::AtLoad& at, double error) {
    const TriedSetting from = runs_.counts().of({options_.from}, at.load);
    const TriedSetting to = runs_.counts().of({options_.to}, at.load);
    at.with_from = from.failures;
    at.with_to = to.failures;
    at.time_with_from = from.run_time;
    at.time_with_to = to.run_time;
    const double less = fisher_more_often(from.failures, to.failures);
    const double more = fisher_more_often(to.failures, from.failures);
    at.p_value = std::min(less, more);
    if (less <= error) at.answer = Answer::fails_less;
    if (more <= error) at.answer = Answer::fails_more;
  }

  // Without a difference there is an answer only when the runs were enough to see one.
  void conclude(ClaimReport::AtLoad& at, double error) {
    judge(at, error);
    if (at.answer != Answer::cannot_tell) return;
    const auto detectable =
        detectable_rate(at.with_from, at.with_to.runs, error, options_.confidence);
    at.detectable = detectable.value_or(0);
    if (detectable && at.with_to.runs >= options_.most_runs) {
      at.answer = Answer::no_difference;
      return;
    }
    if (at.with_from.hits == 0) return;
    const auto more = misses_until_less_often(at.with_from.hits, at.with_from.runs, at.with_to.hits,
                                              at.with_to.runs, error);
    at.more_runs = static_cast<int>(std::min<int64_t>(more.value_or(0), most_more_runs));
  }

  const ClaimOptions& options_;
  const std::shared_ptr<const Test> test_;
  BalanceRuns runs_;
  ClaimReport report_;
  Duration until_{};
};

}  // namespace

Result<ClaimReport> check_claim(Executor& executor, std::shared_ptr<const Test> test,
                                const ClaimOptions& options, EventStream& events) {
  return Claim(executor, std::move(test), options, events)();
}

}  // namespace unflake
