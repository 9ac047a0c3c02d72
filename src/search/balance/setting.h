#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "model/balance_report.h"
#include "model/plan.h"
#include "stats/comparison.h"
#include "util/time.h"

namespace unflake {

// What each of the searched values is set to, in their order.
using Setting = std::vector<Duration>;

Duration scaled(Duration value, double factor);
double to_ms(Duration duration);
Duration from_ms(double ms);

// What the test itself asks for. Times that are computed at run time are scaled together, and the
// longest of them stands for all.
Setting own_setting(const std::vector<TimeValue>& values);

// Whether a run with this is other than one with the test's own time.
bool is_set(const TimeValue& value, Duration to);

// A plan under which the test is given these times instead of its own.
Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting);

Conditions conditions_for(LoadLevel load, int cores);

// To a value that reads well in source code: two digits where that adds at most 1 %, else whole
// milliseconds from 40 on, else three digits.
inline Duration round_up(Duration value) {
  if (value <= Duration::zero()) return Duration::zero();
  const auto exact = static_cast<double>(value.count());
  const auto to_unit = [&](double unit) { return std::ceil(exact / unit - 1e-9) * unit; };
  const double first_digit = std::pow(10, std::floor(std::log10(exact)));
  const double two_digits = to_unit(std::max(1.0, first_digit / 10));
  const double otherwise =
      exact >= 40'000 ? to_unit(1000) : to_unit(std::max(1.0, first_digit / 100));
  return Duration(std::llround(two_digits <= exact * 1.01 ? two_digits : otherwise));
}

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
