#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "stats/intervals.h"

namespace unflake {

// How likely it is that a would hit at least as often as it did if both had the same rate: Fisher's
// exact test, one-sided. Small means that a's rate is the higher one. It holds for any number of
// runs, even few, where a normal approximation would promise too much. Without runs of both
// there is nothing to compare: 1.
double fisher_more_often(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b);
inline double fisher_more_often(const Count& a, const Count& b) {
  return fisher_more_often(a.hits, a.runs, b.hits, b.runs);
}

// How likely it is that two equal rates would look at least as different as this: both
// sides of the test above, doubled.
double fisher_differs(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b);
inline double fisher_differs(const Count& a, const Count& b) {
  return fisher_differs(a.hits, a.runs, b.hits, b.runs);
}

// How many more runs of b, all without a hit, would show at this `error` that a's rate is the
// higher one. None when no number would: a has no hits.
std::optional<int64_t> misses_until_less_often(int64_t hits_a, int64_t runs_a, int64_t hits_b,
                                               int64_t runs_b, double error);

// Holm's correction for several questions asked together: the p-value of each, raised so
// that whoever believes those below `error` is wrong about any of them no more often than that.
std::vector<double> holm(const std::vector<double>& p_values);

// How likely a split at least as uneven as this one is if either side had the same chance: the sign
// test, two-sided and exact.
double sign_test(int64_t ups, int64_t downs);

// Where the middle of differences lies that are spread evenly around it: Hodges and Lehmann's
// estimate, with the interval at 95 % that Wilcoxon's signed ranks give. Outliers do not move it.
// Fewer than six differences say nothing of the interval: it is as wide as they are.
struct MiddleDifference {
  double estimate = 0;
  Interval interval{0, 0};
};
MiddleDifference middle_difference(const std::vector<double>& differences);

// Wald's sequential probability ratio test: whether a rate is at most `low` or at least `high`, by
// as many runs as that takes and no more. A fixed number of runs would have to be large enough for
// the least clear case, and most cases are clear. With endless runs, each of the two wrong verdicts
// is no more likely than `error`; in between the two rates either verdict is right.
class SequentialTest {
 public:
  enum class Verdict { undecided, low, high };

  // Needs 0 <= low < high <= 1. After `most` runs the rate that explains them better wins, which is
  // the majority when the two lie evenly around one half, and a draw is low: the high rate is what
  // has to be shown.
  SequentialTest(double low, double high, double error, int most = std::numeric_limits<int>::max());

  void add(bool hit);  // the first verdict stays, whatever follows
  Verdict verdict() const { return verdict_; }
  int hits() const { return hits_; }
  int runs() const { return runs_; }

 private:
  double evidence_for_high() const;

  double of_hit_;   // what a hit adds to the evidence
  double of_miss_;  // what a miss does; negative
  double enough_;
  int most_;
  int hits_ = 0;
  int runs_ = 0;
  Verdict verdict_ = Verdict::undecided;
};

}  // namespace unflake
