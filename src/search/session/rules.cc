#include "search/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace unflake {

bool Reservations::allow(const Test& test) const {
  if (serial_is_running_ || (test.serial && running_ > 0)) return false;
  if (processors_ + processors_of(test) > slots_) return false;
  return std::ranges::none_of(test.locks,
                              [&](const std::string& lock) { return locks_.contains(lock); });
}

void Reservations::occupy(const Test& test) {
  ++running_;
  processors_ += processors_of(test);
  serial_is_running_ = test.serial;
  locks_.insert(test.locks.begin(), test.locks.end());
}

void Reservations::vacate(const Test& test) {
  --running_;
  processors_ -= processors_of(test);
  if (test.serial) serial_is_running_ = false;
  for (const std::string& lock : test.locks) locks_.erase(lock);
}

// A test that asks for more than there is gets everything.
size_t Reservations::processors_of(const Test& test) const {
  return std::clamp<size_t>(static_cast<size_t>(std::max(1, test.processors)), 1, slots_);
}

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
