#include "search/detect/factor_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "search/trial/confirmation.h"
#include "stats/rates.h"

namespace unflake {
namespace {

using Purpose = TrialEnded::Purpose;

constexpr int base_runs = 5;
constexpr int mixed_base_runs = 20;  // where it fails in some
constexpr int screening_runs = 3;    // where it always ends alike
constexpr int mixed_screening_runs = 8;
constexpr double may_differ = 0.05;  // before what was tried is corrected for
constexpr double least_share = 0.2;  // of runs with the other outcome, once it is confirmed
constexpr Duration least_timeout = std::chrono::seconds(5);

// A level that was screened.
struct Screened {
  const FactorLevel* level = nullptr;
  Count failures;
};

class FactorSearch {
 public:
  FactorSearch(TrialRunner& runner, std::shared_ptr<const Test> test, const FactorLevels& levels,
               const FactorOptions& options)
      : runner_(runner), test_(std::move(test)), levels_(levels), options_(options) {}

  FactorReport operator()() {
    report_.not_tried = levels_.not_tried;
    runner_.teller().begin("factors", "one factor of the surroundings at a time");
    if (measure_base()) screen_all();
    std::ranges::stable_sort(report_.findings, {}, [](const FactorFinding& finding) {
      return fisher_differs(finding.with, finding.without);
    });
    report_.runs = runner_.runs();
    report_.is_complete = !runner_.has_ended() && !runner_.budget().is_spent();
    return std::move(report_);
  }

 private:
  bool may_go_on() const { return !runner_.has_ended() && !runner_.budget().is_spent(); }

  std::optional<bool> failed_under(const Conditions& conditions, Purpose purpose,
                                   const std::string& why) {
    if (!may_go_on()) return std::nullopt;
    const auto seen = runner_.run({{}, conditions, why}, purpose, {timeout_, runner_.left()});
    if (!seen) return std::nullopt;
    if (!has_started(seen->result)) {
      refused_ = seen->result.process.error;
      return std::nullopt;
    }
    const Outcome& outcome = seen->result.outcome;
    if (outcome.kind == OutcomeKind::skipped) return std::nullopt;
    if (outcome.failed()) last_failure_ = outcome;
    longest_ = std::max(longest_, outcome.duration);
    return outcome.failed();
  }

  bool measure_base() {
    int wanted = base_runs;
    timeout_ = options_.timeout;
    while (base_.runs < wanted) {
      const auto failed = failed_under({}, Purpose::baseline, "as it is");
      if (!failed) return false;
      base_.add(*failed);
      if (base_.hits > 0 && base_.misses() > 0) wanted = mixed_base_runs;
    }
    timeout_ = std::min(options_.timeout, 10 * longest_ + least_timeout);
    return true;
  }

  bool is_mixed() const { return base_.hits > 0 && base_.misses() > 0; }

  bool is_wanted(const FactorLevel& level) const {
    return options_.only.empty() ||
           std::ranges::find(options_.only, level.factor) != options_.only.end();
  }

  void screen_all() {
    std::map<std::string, bool> settled;  // factors of which no more levels are looked at
    std::map<std::string, std::vector<Screened>> by_seed;
    for (const FactorLevel& level : levels_.levels) {
      if (!is_wanted(level) || settled[level.factor] || !may_go_on()) continue;
      const Screened screened = screen(level);
      if (refused_) {
        report_.not_tried.push_back({level.factor, *std::exchange(refused_, std::nullopt)});
        settled[level.factor] = true;
      } else if (level.is_seed) {
        by_seed[level.factor].push_back(screened);
      } else if (differs(screened.failures, base_)) {
        settled[level.factor] = level.is_control
                                    ? tell_control(level)
                                    : confirm(level, {}, screened.failures.rate() > base_.rate());
      }
    }
    for (const auto& [factor, all] : by_seed) compare_seeds(all);
  }

  Screened screen(const FactorLevel& level) {
    ++report_.levels;
    Screened screened{&level, {}};
    const int wanted = level.is_seed ? 2 : is_mixed() ? mixed_screening_runs : screening_runs;
    while (screened.failures.runs < wanted) {
      const auto failed = failed_under(level.conditions, Purpose::candidate, level.factor);
      if (!failed) break;
      screened.failures.add(*failed);
    }
    return screened;
  }

  // Whether it is worth more runs.
  bool differs(const Count& with, const Count& without) const {
    if (with.runs == 0) return false;
    if (!is_mixed()) return with.rate() != without.rate();
    return fisher_differs(with, without) <= may_differ;
  }

  bool tell_control(const FactorLevel& level) {
    report_.notes.push_back(fmt::format(
        "{}: the outcome changes on an ordinary day, too ({}), so that no special one was tried: "
        "what the test compares the clock with was not moved",
        level.factor, level.conditions.clock));
    return true;
  }

  // Fresh runs of both, compared as often as needed and no more.
  bool confirm(const FactorLevel& level, const Conditions& reference, bool for_failures) {
    FactorFinding finding;
    finding.test = test_;
    finding.factor = level.factor;
    finding.conditions = level.conditions;
    finding.reference = reference;
    last_failure_.reset();
    Count hits_without;
    Confirmation::Runs runs;
    runs.with_plan = [&]() -> std::optional<bool> {
      const auto failed = failed_under(level.conditions, Purpose::confirm, level.factor);
      if (!failed) return std::nullopt;
      finding.with.add(*failed);
      return *failed == for_failures;
    };
    runs.without_plan = [&](int wanted) {
      while (finding.without.runs < wanted) {
        const auto failed = failed_under(reference, Purpose::baseline, "as it is");
        if (!failed) break;
        finding.without.add(*failed);
        hits_without.add(*failed == for_failures);
      }
      return hits_without;
    };
    runs.has_ended = [&] { return runner_.has_ended(); };
    Confirmation confirmation(static_cast<int>(levels_.levels.size()),
                              static_cast<int>(report_.findings.size()), least_share);
    if (confirmation(runs) != Confirmation::Answer::holds) return false;
    take(std::move(finding));
    return true;
  }

  void take(FactorFinding finding) {
    if (last_failure_) {
      finding.signature = last_failure_->signature;
      if (!last_failure_->failures.empty()) finding.failure = last_failure_->failures.front();
    }
    report_.findings.push_back(std::move(finding));
  }

  // A seed decides when some always fail and others never do.
  void compare_seeds(const std::vector<Screened>& all) {
    const auto always = [](const Screened& one) {
      return one.failures.runs > 0 && one.failures.misses() == 0;
    };
    const auto never = [](const Screened& one) {
      return one.failures.runs > 0 && one.failures.hits == 0;
    };
    const auto failing = std::ranges::find_if(all, always);
    const auto passing = std::ranges::find_if(all, never);
    if (failing == all.end() || passing == all.end()) return;
    const auto clear =
        std::ranges::count_if(all, [&](const Screened& one) { return always(one) || never(one); });
    if (static_cast<size_t>(clear) == all.size())
      confirm(*failing->level, passing->level->conditions, true);
  }

  TrialRunner& runner_;
  const std::shared_ptr<const Test> test_;
  const FactorLevels& levels_;
  const FactorOptions& options_;
  Count base_;
  Duration timeout_{}, longest_{};
  std::optional<Outcome> last_failure_;
  std::optional<std::string> refused_;
  FactorReport report_;
};

}  // namespace

FactorReport look_for_factors(TrialRunner& runner, std::shared_ptr<const Test> test,
                              const FactorLevels& levels, const FactorOptions& options) {
  return FactorSearch(runner, std::move(test), levels, options)();
}

}  // namespace unflake
