#include "model/events.h"

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

std::string_view to_string(GateKind kind) {
  switch (kind) {
    case GateKind::passed:
      return "passed";
    case GateKind::skipped:
      return "skipped";
    case GateKind::not_run:
      return "not_run";
    case GateKind::flaky_new:
      return "flaky_new";
    case GateKind::flaky_known:
      return "flaky_known";
    case GateKind::quarantined:
      return "quarantined";
    case GateKind::failed:
      return "failed";
    case GateKind::other_signature:
      return "other_signature";
    case GateKind::expired:
      return "expired";
  }
  return "?";
}

bool fails_build(GateKind kind) {
  return kind == GateKind::failed || kind == GateKind::other_signature || kind == GateKind::expired;
}

void GateCounts::add(GateKind kind) {
  flaky_new += kind == GateKind::flaky_new;
  flaky_known += kind == GateKind::flaky_known;
  quarantined += kind == GateKind::quarantined;
  failed += kind == GateKind::failed;
  other_signature += kind == GateKind::other_signature;
  expired += kind == GateKind::expired;
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
    case TrialEnded::Purpose::setting:
      return "setting";
    case TrialEnded::Purpose::inject:
      return "inject";
    case TrialEnded::Purpose::replay:
      return "replay";
    case TrialEnded::Purpose::trace:
      return "trace";
    case TrialEnded::Purpose::explain:
      return "explain";
    case TrialEnded::Purpose::fixture:
      return "fixture";
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
