#include "stats/sequential.h"

#include <algorithm>
#include <cmath>

namespace unflake {
namespace {

constexpr double rounding = 1e-9;

// A rate of exactly 0 or 1 would make one run infinite evidence, and two of them no number at all.
double possible(double rate) {
  return std::clamp(rate, 1e-9, 1 - 1e-9);
}

}  // namespace

// 1 / error and not Wald's (1 - error) / error: the bound on each error then is no approximation.
SequentialTest::SequentialTest(double low, double high, double error, int most)
    : of_hit_(std::log(possible(high) / possible(low))),
      of_miss_(std::log((1 - possible(high)) / (1 - possible(low)))),
      enough_(-std::log(error)),
      most_(most) {}

void SequentialTest::add(bool hit) {
  ++runs_;
  hits_ += hit;
  if (verdict_ != Verdict::undecided) return;
  const double evidence = evidence_for_high();
  const bool clear = std::abs(evidence) >= enough_ - rounding;
  if (clear || runs_ >= most_) verdict_ = evidence > rounding ? Verdict::high : Verdict::low;
}

// The logarithm of how many times likelier the runs are with the high rate than with the low one.
double SequentialTest::evidence_for_high() const {
  return hits_ * of_hit_ + (runs_ - hits_) * of_miss_;
}

}  // namespace unflake
