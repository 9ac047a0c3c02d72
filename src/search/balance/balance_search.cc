#include "search/balance/balance_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/comparison.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr double finest_ratio = 1.03;
constexpr Duration finest_time = 200us;
constexpr int finest_share = 1000;  // of what the test asks for now
constexpr int base_runs = 10;
constexpr int base_runs_when_flaky = 100;
constexpr double mostly = 0.5;
constexpr double just_enough = 1.01;    // of the longest need that was seen
constexpr double too_short = 0.985;     // of the usual one
constexpr double locating_share = 0.5;  // of the time that is left; the rest is for the proof

}  // namespace

bool Bracket::is_closed() const {
  if (!fails) return holds == Duration::zero();
  return holds - *fails <= finest || holds <= scaled(*fails, finest_ratio);
}

Duration Bracket::next() const {
  if (!fails) return Duration::zero();
  if (*fails == Duration::zero()) return std::max<Duration>(holds / 4, finest);
  const double ratio = static_cast<double>(holds.count()) / static_cast<double>(fails->count());
  return scaled(*fails, std::sqrt(ratio));
}

BalanceSearch::BalanceSearch(BalanceRuns& runs, const BalanceOptions& options,
                             const TimeProfile& profile, BalanceReport& report)
    : runs_(runs),
      options_(options),
      profile_(profile),
      report_(report),
      values_(profile.values),
      own_(own_setting(values_)),
      brackets_(values_.size()),
      ceiling_(own_),
      holding_(own_),
      final_(own_),
      careful_(own_) {
  for (size_t i = 0; i < own_.size(); ++i) brackets_[i] = {own_[i], std::nullopt, finest(i)};
  runs_.run_at_once(1);
}

Duration BalanceSearch::finest(size_t value) const {
  return std::max<Duration>(finest_time, own_[value] / finest_share);
}

void BalanceSearch::operator()(const std::vector<size_t>& searched) {
  searched_ = searched;
  runs_.search(values_,
               std::ranges::any_of(searched_, [&](size_t i) { return values_[i].is_system_call; }));
  if (measure_base(LoadLevel::idle)) {
    choose_at_once();
    if (options_.fatb)
      halve_all(searched_);
    else
      balance_all();
    if (is_settled_) leave_out_unused();
    if (is_settled_) hold_at_all_loads();
    measure_final();
  }
  write();
}

void BalanceSearch::balance_all() {
  leave_out_watchdogs();
  locate_until_ =
      runs_.elapsed() + scaled(options_.limits.budget - runs_.elapsed(), locating_share);
  for (Settled settled = Settled::flaky_after_all; settled == Settled::flaky_after_all;) {
    if (base_[LoadLevel::idle].failures.hits > 0 && !std::exchange(raise_was_tried_, true)) raise();
    lower_all(searched_);
    leave_out_intervals();
    settled = runs_.over() ? Settled::no : settle();
    is_settled_ = settled == Settled::yes;
  }
}

// How the test does with its own times.
bool BalanceSearch::measure_base(LoadLevel load) {
  const int wanted = options_.fatb ? options_.fatb_runs : base_runs;
  (void)fails_by_itself(load, wanted);
  base_[load] = runs_.own(load);
  return !runs_.over();
}

// Whether more failures of its own show in so many runs. One that fails by itself is measured for
// longer.
bool BalanceSearch::fails_by_itself(LoadLevel load, int runs) {
  const BalanceRuns::Counts before = runs_.counts();
  const Count seen = runs_.own(load).failures;
  runs_.run(own_, load, runs - seen.runs);
  if (runs_.own(load).failures.hits == seen.hits) return false;
  if (was_disturbed(own_, load, before)) return fails_by_itself(load, runs);
  runs_.run(own_, load, base_runs_when_flaky - runs_.own(load).failures.runs);
  base_[load] = runs_.own(load);
  return true;
}

// Company must not show: not in how the test ends, and not in how long it takes.
void BalanceSearch::choose_at_once() {
  const int most = options_.limits.at_once;
  report_.at_once = 1;
  if (most < 2 || profile_.processor_share * most > mostly) return;
  if (base_[LoadLevel::idle].failures.hits > 0) return;
  BalanceRuns::Counts alone_only = runs_.counts();
  const Spread alone = runs_.counted(own_, LoadLevel::idle).run_time;
  runs_.run_at_once(most);
  std::vector<double> together;
  const bool ran = runs_.run(own_, LoadLevel::idle, 3 * most, [&](const Outcome& outcome) {
    together.push_back(to_ms(outcome.duration));
    return is_bad(outcome);
  });
  const bool disturbs = spread_of(together).median > alone.upper_quartile * finest_ratio;
  if (ran && !disturbs && runs_.own(LoadLevel::idle).failures.hits == 0) {
    report_.at_once = most;
    return;
  }
  runs_.go_back_to(std::move(alone_only));
  runs_.run_at_once(1);
}

BalanceSearch::Verdict BalanceSearch::check_once(const Setting& setting, LoadLevel load,
                                                 const RateCheck::Limits& limits) {
  RateCheck check(base_[load], limits);
  runs_.run(setting, load, limits.most_runs, [&](const Outcome& outcome) {
    check.add(outcome);
    return check.verdict() != Verdict::undecided;
  });
  const bool is_worse = check.verdict() == Verdict::holds && fails_clearly_more(setting, load);
  const Verdict verdict = is_worse ? Verdict::fails : check.verdict();
  runs_.judge(setting, load, verdict, check.refused_rate());
  return verdict;
}

// Of a test that fails by itself: an increase too small for the check may show when all is counted.
bool BalanceSearch::fails_clearly_more(const Setting& setting, LoadLevel load) const {
  const auto base = base_.find(load);
  if (base == base_.end() || base->second.failures.hits == 0) return false;
  const Count seen = runs_.failures(setting, load), own = base->second.failures;
  return fisher_more_often(seen.hits, seen.runs, own.hits, own.runs) <= 1 - options_.confidence;
}

bool BalanceSearch::mostly_fails(const Setting& setting, LoadLevel load) const {
  const Count seen = runs_.failures(setting, load);
  return seen.hits > mostly * seen.runs;
}

// A few failures among many passes may come from runs side by side, which then say nothing.
bool BalanceSearch::was_disturbed(const Setting& setting, LoadLevel load,
                                  BalanceRuns::Counts before) {
  if (mostly_fails(setting, load) || report_.at_once == 1 || load != LoadLevel::idle) return false;
  const Count seen = runs_.failures(setting, load);
  report_.notes.push_back(fmt::format(
      "{} of {} runs side by side failed with {}: they do not count, and all after them "
      "were made one by one",
      seen.hits, seen.runs, text_of(setting)));
  runs_.go_back_to(std::move(before));
  runs_.run_at_once(1);
  report_.at_once = 1;
  return true;
}

BalanceSearch::Verdict BalanceSearch::check(const Setting& setting, LoadLevel load,
                                            const RateCheck::Limits& limits) {
  BalanceRuns::Counts before = runs_.counts();
  Verdict verdict = check_once(setting, load, limits);
  if (verdict == Verdict::fails && was_disturbed(setting, load, std::move(before)))
    verdict = check_once(setting, load, limits);
  const Count seen = runs_.failures(setting, load);
  tell(setting, load, seen.hits, seen.runs);
  return verdict;
}

void BalanceSearch::tell(const Setting& setting, LoadLevel load, int64_t hits, int64_t runs) {
  runs_.say(fmt::format("{}{}: {} of {} failed", text_of(setting),
                        load == LoadLevel::idle ? "" : ", " + std::string(to_string(load)), hits,
                        runs));
}

std::string BalanceSearch::text_of(const Setting& setting) const {
  std::vector<std::string> parts;
  for (const size_t i : searched_)
    if (setting[i] != own_[i])
      parts.push_back(
          fmt::format("{} = {}", to_string(values_[i].site),
                      setting[i] == Duration::zero() ? "none" : format_duration(setting[i])));
  return parts.empty() ? "the test's own times" : join(parts, ", ");
}

bool BalanceSearch::has_time_to_locate() const {
  return !runs_.over() && (runs_.elapsed() < locate_until_ || holding_ == ceiling_);
}

// Values that may depend on each other keep to their brackets, so that they go down together; and
// of one that is computed the need was seen in one of its visits only.
bool BalanceSearch::may_jump() const {
  return searched_.size() == 1 && values_[searched_.front()].is_constant();
}

bool BalanceSearch::can_jump(size_t value) const {
  return may_jump() && brackets_[value].fails && report_.values[value].needed;
}

// Either side of what was seen to be waited for.
Duration BalanceSearch::next(size_t value) const {
  const Bracket& bracket = brackets_[value];
  const auto& needed = report_.values[value].needed;
  if (!can_jump(value)) return bracket.next();
  if (const Duration enough = scaled(needed->longest, just_enough);
      enough > *bracket.fails && scaled(enough, just_enough) < bracket.holds)
    return enough;
  if (const Duration too_little = scaled(needed->median, too_short);
      scaled(too_little, just_enough) < bracket.holds &&
      too_little > scaled(*bracket.fails, just_enough))
    return too_little;
  return bracket.next();
}

// In between some runs need more and some less, and no single value is to be found there.
bool BalanceSearch::is_located(size_t value) const {
  const Bracket& bracket = brackets_[value];
  if (bracket.is_closed()) return true;
  const auto& needed = report_.values[value].needed;
  if (!can_jump(value)) return false;
  return bracket.holds <= scaled(needed->longest, just_enough * just_enough) &&
         scaled(*bracket.fails, just_enough) >= scaled(needed->median, too_short);
}

void BalanceSearch::lower_all(std::vector<size_t> members) {
  const auto is_done = [&](size_t i) { return is_located(i); };
  for (std::erase_if(members, is_done); !members.empty() && has_time_to_locate();
       std::erase_if(members, is_done)) {
    Setting candidates = holding_;
    for (const size_t i : members) candidates[i] = next(i);
    lower(members, candidates);
    if (may_jump()) note_needs();
  }
  ran_short_ = !members.empty();
}

void BalanceSearch::lower(std::span<const size_t> members, const Setting& candidates) {
  Setting tried = holding_;
  for (const size_t i : members) tried[i] = candidates[i];
  const Verdict verdict = check(tried, LoadLevel::idle, locating);
  if (verdict == Verdict::holds) {
    holding_ = tried;
    for (const size_t i : members) brackets_[i].holds = candidates[i];
  } else if (verdict == Verdict::fails && members.size() == 1) {
    brackets_[members.front()].fails = candidates[members.front()];
  } else if (verdict == Verdict::fails) {
    const size_t half = members.size() / 2;
    lower(members.first(half), candidates);
    if (has_time_to_locate()) lower(members.subspan(half), candidates);
  }
}

}  // namespace unflake
