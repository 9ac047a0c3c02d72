#pragma once

#include <limits>

namespace unflake {

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
