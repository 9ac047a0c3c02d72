#include "search/retry_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace unflake {

void RetryRule::count_first_try(bool failed) {
  ++tried_;
  if (failed) ++failed_;
  const auto& bound = policy_.mass_failure;
  if (bound && failed_ >= bound->tests && failed_ > bound->share * tried_) mass_failure_ = true;
}

std::string RetryRule::why_not(const Outcome& outcome) {
  const auto is_report = [](const Failure& failure) { return is_sanitizer(failure.kind); };
  if (!policy_.sanitizer_reports && std::ranges::any_of(outcome.failures, is_report)) {
    report_seen_ = true;
    return "not tried again: a sanitizer's report proves a defect";
  }
  return mass_failure_ ? "not tried again: too many tests failed" : "";
}

std::vector<Note> RetryRule::news() {
  std::vector<Note> notes;
  if (report_seen_ && !std::exchange(told_report_, true))
    notes.push_back({Note::Level::info,
                     "failures that a sanitizer reports are not tried again: the report proves a "
                     "defect, whether or not another run shows it",
                     ""});
  if (mass_failure_ && !std::exchange(told_mass_failure_, true))
    notes.push_back(
        {Note::Level::warning,
         fmt::format("{} of {} tests failed at their first try: no test is tried again, because "
                     "something that they share seems to be broken",
                     failed_, tried_),
         "look at the first failure; [ci] mass_failure_tests and mass_failure_percent set the "
         "bound"});
  return notes;
}

}  // namespace unflake
