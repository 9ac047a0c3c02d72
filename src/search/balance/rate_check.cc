#include "search/balance/rate_check.h"

#include <algorithm>

#include "stats/intervals.h"

namespace unflake {
namespace {

// Where a test often fails anyway, few more failures would take thousands of runs to tell.
constexpr double least_increase = 1.5;

SequentialTest test_above(double rate, const RateCheck::Limits& limits) {
  const auto with = [&](double spoiled) { return rate + (1 - rate) * spoiled; };
  const double refused = std::min(0.9, std::max(limits.refused, least_increase * rate));
  return {with(limits.tolerated), with(refused), limits.error, limits.most_runs};
}

}  // namespace

double OwnFailures::rate() const {
  return failures.hits > 0 ? score_interval(failures.hits, failures.runs, 0.8).high : 0;
}

void OwnFailures::add(const Outcome& outcome) {
  ++failures.runs;
  if (!outcome.failed()) return;
  ++failures.hits;
  signatures.insert(outcome.signature);
}

RateCheck::RateCheck(const OwnFailures& own, const Limits& limits)
    : own_(own), all_(test_above(own.rate(), limits)), new_(test_above(0, limits)) {}

void RateCheck::add(const Outcome& outcome) {
  all_.add(outcome.failed());
  new_.add(outcome.failed() && !own_.signatures.contains(outcome.signature));
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
