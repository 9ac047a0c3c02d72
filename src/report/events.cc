#include "report/events.h"

namespace unflake {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::flaky:
      return "flaky";
    case Verdict::skipped:
      return "skipped";
    case Verdict::not_run:
      return "not_run";
  }
  return "?";
}

std::string_view to_string(Note::Level level) {
  switch (level) {
    case Note::Level::info:
      return "info";
    case Note::Level::warning:
      return "warning";
    case Note::Level::error:
      return "error";
  }
  return "?";
}

std::string_view to_string(TrialEnded::Purpose purpose) {
  switch (purpose) {
    case TrialEnded::Purpose::profile:
      return "profile";
    case TrialEnded::Purpose::candidate:
      return "candidate";
    case TrialEnded::Purpose::confirm:
      return "confirm";
    case TrialEnded::Purpose::baseline:
      return "baseline";
    case TrialEnded::Purpose::dose:
      return "dose";
    case TrialEnded::Purpose::look:
      return "look";
  }
  return "?";
}

void Tally::add(const Outcome& outcome) {
  if (outcome.failed())
    ++failures;
  else if (outcome.kind == OutcomeKind::skipped)
    ++skips;
  else
    ++passes;
}

Tally& Tally::operator+=(const Tally& other) {
  passes += other.passes;
  failures += other.failures;
  skips += other.skips;
  return *this;
}

Verdict verdict_of(const Tally& tally) {
  if (tally.passes > 0 && tally.failures > 0) return Verdict::flaky;
  if (tally.failures > 0) return Verdict::failed;
  if (tally.passes > 0) return Verdict::passed;
  return tally.skips > 0 ? Verdict::skipped : Verdict::not_run;
}

}  // namespace unflake
