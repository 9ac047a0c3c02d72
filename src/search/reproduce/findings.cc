#include "search/reproduce/findings.h"

#include <algorithm>
#include <utility>

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration worth_a_probe = 2s;  // of the budget: asking the machine takes about one
constexpr double scarce_share = 0.5;    // of a processor, that a busy machine leaves a test

}  // namespace

bool Findings::has_reliable() const {
  return std::ranges::any_of(all_, &Found::is_reliable);
}

bool Findings::has_flaw() const {
  return std::ranges::any_of(all_, [](const Found& found) { return !found.is_margin(); });
}

Duration Findings::lateness_of(const Found& found) const {
  return found.slack ? found.slack->fails : times_.added_by(found.trial.plan);
}

bool Findings::has_already(const Trial& trial, const Outcome& outcome) const {
  const bool is_short = times_.added_by(trial.plan) <= limits().overloaded;
  return std::ranges::any_of(all_, [&](const Found& found) {
    return found.is_reliable() && found.outcome.signature == outcome.signature &&
           !(is_short && is_long(found));
  });
}

void Findings::keep(Found found) {
  const auto weaker = std::ranges::find_if(
      all_, [&](const Found& other) { return other.outcome.signature == found.outcome.signature; });
  if (weaker == all_.end())
    all_.push_back(std::move(found));
  else if (weaker->with_plan.rate() < found.with_plan.rate() || is_long(*weaker))
    *weaker = std::move(found);
}

void Findings::learn_machine_lateness(Duration left) {
  if (std::exchange(asked_machine_, true) || !options_.measure_lateness) return;
  if (left >= worth_a_probe) machine_lateness_ = options_.measure_lateness();
}

bool Findings::was_seen(const std::string& signature) const {
  const auto is_it = [&](const Outcome& outcome) {
    return outcome.failed() && outcome.signature == signature;
  };
  return options_.known_signatures.contains(signature) ||
         std::ranges::any_of(base_.outcomes(), is_it) ||
         std::ranges::any_of(profile_.runs, is_it, &ExperimentResult::outcome);
}

void Findings::judge(Found& found) const {
  found.was_seen =
      goal_.is_inverted() || !goal_.wanted().anything() || was_seen(found.outcome.signature);
  found.machine_lateness = machine_lateness_;
  const bool is_scarce_only = found.trial.plan.interventions.empty();
  if (is_scarce_only && found.trial.conditions.cpu_share >= scarce_share)
    found.plausibility = Plausibility::flaw;
  else if (is_scarce_only)
    found.plausibility = Plausibility::risk;
  else if (!goal_.is_inverted() && lateness_of(found) > Duration::zero())
    found.plausibility = plausibility_by_lateness(found);
}

// As long as no lateness is known that does no harm, a little may do as much as the plan.
std::optional<Plausibility> Findings::plausibility_by_lateness(const Found& found) const {
  const Plausibility at_most = plausibility_of(lateness_of(found), limits());
  const bool is_measured = found.slack && found.slack->passes > Duration::zero();
  if (is_measured || at_most == Plausibility::flaw) return at_most;
  return std::nullopt;
}

}  // namespace unflake
