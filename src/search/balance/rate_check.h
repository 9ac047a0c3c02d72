#pragma once

#include <set>
#include <string>

#include "model/balance_report.h"
#include "stats/sequential.h"

namespace unflake {

// A run that was skipped tested nothing, and is no better than one that failed.
inline bool is_bad(const Outcome& outcome) {
  return outcome.failed() || outcome.kind == OutcomeKind::skipped;
}

// How a test fails by itself, with the times that it asks for.
struct OwnFailures {
  Count failures;
  std::set<std::string> signatures;

  // As high as it may well be: a setting must not be refused because the test failed less often
  // than it usually does while that was measured.
  double rate() const;
  void add(const Outcome& outcome);
};

// Whether a setting makes a test fail more often than it does anyway and than is tolerated, by as
// many runs as that takes.
class RateCheck {
 public:
  // Shares of the runs that would be good otherwise.
  struct Limits {
    double tolerated = 0.001;
    double refused = 0.5;  // in between either verdict is right
    double error = 0.05;
    int most_runs = 1000;
  };
  RateCheck(const OwnFailures& own, const Limits& limits);

  void add(const Outcome& outcome);
  TriedSetting::Verdict verdict() const;
  double refused_rate() const { return refused_rate_; }

 private:
  const OwnFailures& own_;
  const double refused_rate_;
  SequentialTest all_;  // failures of any kind, against the rate that the test has anyway
  SequentialTest new_;  // failures that the test does not have by itself, against none
};

}  // namespace unflake
