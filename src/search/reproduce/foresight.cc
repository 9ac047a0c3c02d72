#include "search/reproduce/foresight.h"

#include <algorithm>

namespace unflake {
namespace {

// Empty: it was not controlled to the end.
std::optional<uint64_t> digest_of(const ExperimentResult& result) {
  if (!result.trace || !result.trace->controlled) return std::nullopt;
  const ControlledRun& run = *result.trace->controlled;
  if (!run.not_repeatable.empty()) return std::nullopt;
  return run.digest;
}

}  // namespace

std::optional<Observation> Foresight::run(const Trial& trial, TrialRunner::Purpose purpose) {
  Trial controlled = trial;
  controlled.plan.agent = true;
  controlled.plan.schedule = Schedule{};
  return runner_.run(controlled, purpose, {times_.until_it_hangs(), runner_.left()});
}

bool Foresight::is_repeatable(const Plan& plain) {
  std::optional<uint64_t> first;
  for (int i = 0; i < 2; ++i) {
    const auto seen = run({plain, {}, "under control"}, TrialRunner::Purpose::look);
    const auto digest = seen ? digest_of(seen->result) : std::nullopt;
    if (!digest || seen->result.outcome.failed() || (first && first != digest)) return false;
    first = digest;
  }
  return true;
}

bool Foresight::is_possible(const Plan& plain) {
  if (goal_.is_inverted()) return false;
  if (!is_possible_) is_possible_ = is_repeatable(plain);
  return *is_possible_;
}

bool Foresight::is_refuted(const Plan& plan) const {
  return std::ranges::any_of(plan.interventions, [this](const Intervention& one) {
    return refuted_.contains(site_text(one));
  });
}

std::optional<Observation> Foresight::of(const Trial& trial, TrialRunner::Purpose purpose) {
  if (!is_possible_.value_or(false) || trial.plan.schedule || trial.conditions != Conditions{})
    return std::nullopt;
  auto seen = run(trial, purpose);
  if (!seen || !digest_of(seen->result)) return std::nullopt;
  seen->hit = seen->hit && seen->fired;
  return seen;
}

}  // namespace unflake
