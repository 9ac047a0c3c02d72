#include "search/balance/setting.h"

#include <algorithm>
#include <cmath>

#include "stats/intervals.h"

namespace unflake {

using namespace std::chrono_literals;

Duration scaled(Duration value, double factor) {
  return Duration(std::llround(static_cast<double>(value.count()) * factor));
}

double to_ms(Duration duration) {
  return static_cast<double>(duration.count()) / 1000;
}

Duration from_ms(double ms) {
  return Duration(static_cast<int64_t>(ms * 1000));
}

Setting own_setting(const std::vector<TimeValue>& values) {
  Setting own;
  for (const TimeValue& value : values) own.push_back(value.most);
  return own;
}

bool is_set(const TimeValue& value, Duration to) {
  return to != value.most && value.most > Duration::zero();
}

Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting) {
  for (size_t i = 0; i < values.size(); ++i) {
    const TimeValue& value = values[i];
    if (!is_set(value, setting[i])) continue;
    Intervention scaled;
    scaled.site = value.site;
    scaled.executable = value.executable;
    scaled.action = Intervention::Action::scale_time;
    const double factor =
        static_cast<double>(setting[i].count()) / static_cast<double>(value.most.count());
    scaled.duration = Duration(std::llround(factor * static_cast<double>(Duration(1s).count())));
    base.interventions.push_back(std::move(scaled));
  }
  return base;
}

Conditions conditions_for(LoadLevel load, int cores) {
  Conditions conditions;
  conditions.one_core = load == LoadLevel::one_core;
  conditions.competitors = load == LoadLevel::busy ? cores : 0;
  return conditions;
}

namespace {

// Where a test often fails anyway, few more failures would take thousands of runs to tell.
constexpr double least_odds = 2;
constexpr double most_refused = 0.99;

double with_spoiled(double rate, double spoiled) {
  return rate + (1 - rate) * spoiled;
}

double refused_above(double rate, const RateCheck::Limits& limits) {
  const double odds = least_odds * rate / (1 - std::min(rate, most_refused));
  return std::min(most_refused, std::max(with_spoiled(rate, limits.refused), odds / (1 + odds)));
}

SequentialTest test_above(double rate, const RateCheck::Limits& limits) {
  return {with_spoiled(rate, limits.tolerated), refused_above(rate, limits), limits.error,
          limits.most_runs};
}

}  // namespace

double OwnFailures::rate() const {
  return failures.hits > 0 ? score_interval(failures.hits, failures.runs, 0.8).high : 0;
}

void OwnFailures::add(const Outcome& outcome) {
  failures.add(is_bad(outcome));
  if (is_bad(outcome)) signatures.insert(outcome.signature);
}

RateCheck::RateCheck(const OwnFailures& own, const Limits& limits)
    : own_(own),
      refused_rate_(refused_above(own.rate(), limits)),
      all_(test_above(own.rate(), limits)),
      new_(test_above(0, limits)) {}

void RateCheck::add(const Outcome& outcome) {
  all_.add(is_bad(outcome));
  new_.add(is_bad(outcome) && !own_.signatures.contains(outcome.signature));
}

TriedSetting::Verdict RateCheck::verdict() const {
  using Sequential = SequentialTest::Verdict;
  if (all_.verdict() == Sequential::high || new_.verdict() == Sequential::high)
    return TriedSetting::Verdict::fails;
  if (all_.verdict() == Sequential::low && new_.verdict() == Sequential::low)
    return TriedSetting::Verdict::holds;
  return TriedSetting::Verdict::undecided;
}

}  // namespace unflake
