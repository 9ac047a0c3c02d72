#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace unflake {

inline double log_gamma(double x) {
  int sign = 0;  // std::lgamma keeps the sign in a global that threads share
  return ::lgamma_r(x, &sign);
}

struct Interval {
  double low = 0;
  double high = 1;
};

// Where a proportion lies, given `hits` of `trials`. Exact (Clopper and Pearson): covers the truth
// at least as often as `confidence` says, for every number of trials. No trials say nothing: 0..1.
Interval exact_interval(int64_t hits, int64_t trials, double confidence = 0.95);

// Wilson's score interval: close to the exact one, and cheap enough to rank thousands of tests by.
Interval score_interval(int64_t hits, int64_t trials, double confidence = 0.95);

// The highest failure rate that `trials` runs without a failure leave open, one-sided.
double upper_bound_zero_failures(int64_t trials, double confidence = 0.95);

// I_x(a, b): the chance that a Beta(a, b) variable is at most x.
double incomplete_beta(double a, double b, double x);

// "3.0 %"; a rate below 1 % gets the decimals that two significant digits take: "0.030 %".
std::string percent(double rate);

// The same rounded up: a promise must not be better than the evidence.
std::string percent_at_most(double rate);

// "0.62..8.5 %"
std::string interval_text(const Interval& interval);

// "3/100 runs failed (3.0 %, 95 % interval 0.62..8.5 %)", or what 100 passes promise. `runs` are
// those that passed or failed.
std::string rate_text(int64_t failures, int64_t runs);

// Runs, and how many of them showed something.
struct Count {
  int hits = 0;
  int runs = 0;

  void add(bool is_hit) {
    ++runs;
    hits += is_hit;
  }
  Count& operator+=(const Count& other) {
    hits += other.hits;
    runs += other.runs;
    return *this;
  }
  int misses() const { return runs - hits; }
  // Nothing of nothing is nothing.
  double rate() const { return runs > 0 ? static_cast<double>(hits) / runs : 0; }
  Interval interval(double confidence = 0.95) const {
    return exact_interval(hits, runs, confidence);
  }
  bool operator==(const Count&) const = default;
};

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

// How a run of a test ends, as chances; what is left is neither: it was skipped. Runs are taken to
// be independent of each other.
struct RunChances {
  double pass = 1;
  double fail = 0;

  static RunChances of_counts(int64_t passes, int64_t failures, int64_t others = 0);
};

struct RerunCost {
  RunChances chances;
  double seconds = 0;  // of one run
};

// U(n): the chance that n runs show both a pass and a failure. Added up from terms that are all
// positive, so rare failures and rare passes lose no digit.
double chance_unveiled(const RunChances& chances, uint64_t runs);

// E[R(n)]: how many of at most n runs are made when the first one that unveils the test is the
// last.
double expected_runs(const RunChances& chances, uint64_t most_runs);

// What rerunning every test at most so many times is expected to bring and to take.
struct RerunOutlook {
  uint64_t most_runs = 0;
  double detections = 0;  // E[F(n)]
  double runs = 0;
  double seconds = 0;
  bool operator==(const RerunOutlook&) const = default;
};
RerunOutlook outlook_of(std::span<const RerunCost> tests, uint64_t most_runs);

// The most runs of each test that such a time is expected to hold; `bound` at most.
uint64_t runs_within(std::span<const RerunCost> tests, double seconds, uint64_t bound);

// How many runs unveil a test with this chance, at least: 170 for 95 % of the median flaky test
// that was studied. None within `bound`: it may never.
uint64_t runs_to_unveil(const RunChances& chances, double confidence, uint64_t bound);

}  // namespace unflake
