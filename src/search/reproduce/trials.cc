#include "search/reproduce/trials.h"

#include <fmt/format.h>

namespace unflake {

bool is_delay(const Intervention& intervention) {
  return intervention.action != Intervention::Action::watch;
}

bool has_fired(const Plan& plan, const ExperimentResult& result) {
  bool has_delays = false;
  for (size_t i = 0; i < plan.interventions.size(); ++i) {
    if (!is_delay(plan.interventions[i])) continue;
    has_delays = true;
    if (result.trace && i < result.trace->interventions.size() &&
        result.trace->interventions[i].fired > 0)
      return true;
  }
  return !has_delays;
}

bool has_started(const ExperimentResult& result) {
  return result.process.end != ProcessResult::End::not_started;
}

std::string site_text(const Intervention& intervention) {
  return to_string(intervention.site) + "@" + intervention.thread.text;
}

std::string text_of(const Trial& trial) {
  const Conditions& conditions = trial.conditions;
  std::string text =
      fmt::format("{} {} {}", conditions.one_core, conditions.cpu_share, conditions.competitors);
  for (const Intervention& intervention : trial.plan.interventions)
    text += " " + intervention.executable + "!" + to_string(intervention, trial.plan.interventions);
  return text;
}

bool is_for(const Intervention& intervention, const Place& place) {
  using Threads = Intervention::Threads;
  const ThreadName& wanted = intervention.thread;
  return place.site == intervention.site &&
         (intervention.executable.empty() || intervention.executable == place.executable) &&
         (intervention.threads != Threads::named || wanted.text == place.thread.text) &&
         (intervention.threads != Threads::in_class ||
          wanted.thread_class == place.thread.thread_class);
}

std::string headline_of(const Outcome& outcome) {
  if (outcome.failures.empty()) return std::string(to_string(outcome.kind));
  return headline(outcome.failures.front());
}

}  // namespace unflake
