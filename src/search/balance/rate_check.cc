#include "search/balance/rate_check.h"

namespace unflake {
namespace {

SequentialTest test_above(double rate, const RateCheck::Limits& limits) {
  const auto with = [&](double spoiled) { return rate + (1 - rate) * spoiled; };
  return {with(limits.tolerated), with(limits.refused), limits.error, limits.most_runs};
}

}  // namespace

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
