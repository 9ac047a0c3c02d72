#include "search/reproduce/findings.h"

#include <algorithm>
#include <utility>

#include "output/ci_log/ci_log.h"
#include "util/paths.h"

namespace unflake {

bool Wanted::matches(const Outcome& outcome) const {
  if (!outcome.failed()) return false;
  if (anything() || outcome.signature == signature) return true;
  if (!failure) return false;
  return std::ranges::any_of(outcome.failures, [&](const Failure& seen) {
    const bool same_line = failure->line > 0 && is_same_line(seen, *failure);
    const bool same_check = !failure->expression.empty() &&
                            seen.expression == failure->expression &&
                            base_name(seen.file) == base_name(failure->file);
    return same_line || same_check || tells_of(*failure, seen);
  });
}

Plan base_plan(const HuntOptions& options) {
  Plan plan;
  plan.id = "hunt";
  plan.agent = true;
  plan.groups_off = options.groups_off;
  plan.extra_functions = options.extra_functions;
  plan.system_calls = options.system_calls;
  return plan;
}

bool Goal::shows_wanted(const ExperimentResult& result) const {
  if (wanted_.matches(result.outcome)) return true;
  if (!wanted_.failure || wanted_.failure->line == 0) return false;
  if (failed_at(result, *wanted_.failure)) return true;
  const ExperimentResult* usual = profile_.model();
  return names_line(result.process.output.text(), *wanted_.failure) &&
         !(usual != nullptr && names_line(usual->process.output.text(), *wanted_.failure));
}

bool Goal::is_reached(const ExperimentResult& result) const {
  if (!has_started(result)) return false;
  if (inverted_) return result.outcome.kind == OutcomeKind::pass;
  return result.outcome.failed() && shows_wanted(result);
}

bool Goal::is_same(const Outcome& outcome, const std::string& signature) const {
  if (inverted_) return outcome.kind == OutcomeKind::pass;
  return outcome.failed() && outcome.signature == signature;
}

bool Goal::is_again(const Trial& trial, const std::string& signature,
                    const ExperimentResult& result) const {
  return has_started(result) && has_fired(trial.plan, result) && is_same(result.outcome, signature);
}

namespace {

using namespace std::chrono_literals;

constexpr Duration worth_a_probe = 2s;  // of the budget: asking the machine takes about one
constexpr double scarce_share = 0.5;    // of a processor, that a busy machine leaves a test

bool is_only_under_control(const Found& found) {
  return found.trial.plan.schedule && !found.was_seen;
}

}  // namespace

bool Findings::has_reliable() const {
  return std::ranges::any_of(
      all_, [](const Found& found) { return found.is_reliable() && !found.wants_delay(); });
}

bool Findings::has_flaw() const {
  return std::ranges::any_of(all_, [](const Found& found) { return !found.is_margin(); });
}

bool Findings::is_enough() const {
  return std::ranges::any_of(
      all_, [](const Found& found) { return !found.is_margin() && !found.wants_delay(); });
}

Duration Findings::lateness_of(const Found& found) const {
  return found.slack ? found.slack->fails : times_.added_by(found.trial.plan);
}

bool Findings::has_already(const Trial& trial, const Outcome& outcome) const {
  const bool is_short = times_.added_by(trial.plan) <= limits().overloaded;
  return std::ranges::any_of(all_, [&](const Found& found) {
    return found.is_reliable() && found.outcome.signature == outcome.signature &&
           !found.wants_delay() && !(is_short && is_long(found));
  });
}

void Findings::keep(Found found) {
  const auto weaker = std::ranges::find_if(
      all_, [&](const Found& other) { return other.outcome.signature == found.outcome.signature; });
  if (weaker == all_.end())
    all_.push_back(std::move(found));
  else if (weaker->with_plan.rate() < found.with_plan.rate() || is_long(*weaker) ||
           (weaker->wants_delay() && found.is_reliable()))
    *weaker = std::move(found);
}

// Very little lateness is a flaw on every machine.
bool Findings::depends_on_machine(const Found& found) const {
  constexpr MachineLateness quiet{}, frantic{1h, 1h};
  const Duration late = lateness_of(found);
  return plausibility_of(late, limits_of(quiet)) != plausibility_of(late, limits_of(frantic));
}

void Findings::learn_machine_lateness(const Found& found, Duration left) {
  if (asked_machine_ || !options_.measure_lateness || !depends_on_machine(found)) return;
  asked_machine_ = true;
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
  const bool is_scarce_only = found.trial.plan.interventions.empty() && !found.trial.plan.schedule;
  if (is_scarce_only && found.trial.conditions.cpu_share >= scarce_share)
    found.plausibility = Plausibility::flaw;
  else if (is_scarce_only)
    found.plausibility = Plausibility::risk;
  else if (is_only_under_control(found))
    found.plausibility = std::nullopt;  // nobody knows whether a machine does that
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
