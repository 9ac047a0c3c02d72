#include "search/balance/rate_check.h"

#include <algorithm>

#include "stats/intervals.h"

namespace unflake {
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
  ++failures.runs;
  if (!is_bad(outcome)) return;
  ++failures.hits;
  signatures.insert(outcome.signature);
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
