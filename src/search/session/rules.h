#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/test.h"

namespace unflake {

// What the running tests keep from the others: processors, locks, or everything.
class Reservations {
 public:
  explicit Reservations(size_t slots) : slots_(slots) {}

  bool allow(const Test& test) const;
  void occupy(const Test& test);
  void vacate(const Test& test);

 private:
  size_t processors_of(const Test& test) const;

  size_t slots_;
  size_t running_ = 0;
  size_t processors_ = 0;
  bool serial_is_running_ = false;
  std::set<std::string> locks_;
};

// When so many tests fail at their first try that something common to them is broken.
struct MassFailure {
  int tests = 10;      // at least so many
  double share = 0.2;  // and more than this part of those that have run
};

struct RetryPolicy {
  bool sanitizer_reports = true;            // are tried again, too
  std::optional<MassFailure> mass_failure;  // ends all retries; none: nothing does
};

// Trying again is for what may pass: a sanitizer's report is a proof, and what breaks everything
// would break every try.
class RetryRule {
 public:
  explicit RetryRule(const RetryPolicy& policy) : policy_(policy) {}

  void count_first_try(bool failed);
  // Why this failure is not tried again; empty: it may be.
  std::string why_not(const Outcome& outcome);
  bool mass_failure() const { return mass_failure_; }
  // What the user should know and was not told before.
  std::vector<Note> news();

 private:
  const RetryPolicy policy_;
  int tried_ = 0;   // tests with a run that ended
  int failed_ = 0;  // of these, the ones whose first run failed
  bool mass_failure_ = false;
  bool report_seen_ = false;
  bool told_mass_failure_ = false, told_report_ = false;
};

}  // namespace unflake
