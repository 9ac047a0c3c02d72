#pragma once

#include <optional>
#include <set>
#include <string>

#include "search/reproduce/findings.h"

namespace unflake {

// What a trial comes to when the test runs under control, where being late takes no time: worth
// asking before a free run, in which it does.
class Foresight {
 public:
  Foresight(TrialRunner& runner, const Goal& goal, const TrialTimes& times)
      : runner_(runner), goal_(goal), times_(times) {}

  // Whether the test can be controlled, passes there when nobody interferes, and always goes the
  // same way. Asked of the test once.
  bool is_possible(const Plan& plain);

  // One run. Nothing when it is not possible, or when there is no time.
  std::optional<Observation> of(const Trial& trial, TrialRunner::Purpose purpose);

  // Free cores did not show what control had: it tells nothing of lateness at this place, alone or
  // with others.
  void refute(const Intervention& delay) { refuted_.insert(site_text(delay)); }
  bool is_refuted(const Plan& plan) const;

 private:
  std::optional<Observation> run(const Trial& trial, TrialRunner::Purpose purpose);
  bool is_repeatable(const Plan& plain);

  TrialRunner& runner_;
  const Goal& goal_;
  const TrialTimes& times_;
  std::optional<bool> is_possible_;
  std::set<std::string> refuted_;
};

}  // namespace unflake
