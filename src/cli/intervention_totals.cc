#include "cli/intervention_totals.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/table.h"

namespace unflake {

void InterventionTotals::add(const ExperimentResult& result) {
  ++runs_;
  failed_ += result.outcome.failed();
  bool fired = false;
  const auto& states = result.trace->interventions;
  states_.resize(std::max(states_.size(), states.size()));
  for (size_t i = 0; i < states.size(); ++i) {
    states_[i].visits += states[i].visits;
    states_[i].fired += states[i].fired;
    states_[i].let_go += states[i].let_go;
    states_[i].added += states[i].added;
    fired = fired || states[i].fired > 0;
  }
  failed_by_itself_ += result.outcome.failed() && !fired;
}

bool InterventionTotals::any_fired(const std::vector<Intervention>& plan) const {
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i)
    if (plan[i].action != Intervention::Action::watch && states_[i].fired > 0) return true;
  return false;
}

std::string InterventionTotals::table(const std::vector<Intervention>& plan,
                                      const std::vector<std::string>& texts) const {
  Table table({"INTERVENTION", "VISITS", "FIRED", "TIME ADDED", "LET GO"});
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i) {
    const TracedIntervention& state = states_[i];
    const bool is_hold = plan[i].action == Intervention::Action::hold;
    const bool is_watch = plan[i].action == Intervention::Action::watch;
    table.add({(is_watch ? "watch " : "") + texts[i], std::to_string(state.visits),
               is_watch ? "-" : std::to_string(state.fired),
               is_watch ? "-" : format_duration(state.added),
               is_hold ? std::to_string(state.let_go) : "-"});
  }
  return table.text();
}

std::string InterventionTotals::doubts(const std::vector<Intervention>& plan,
                                       const std::vector<std::string>& texts,
                                       const Style& style) const {
  std::string text;
  const auto note = [&](const std::string& words) {
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), words);
  };
  if (failed_by_itself_ > 0)
    note(fmt::format("{} failed although nothing had fired: the test fails by itself too",
                     counted(failed_by_itself_, "run")));
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i) {
    if (states_[i].fired > 0) continue;
    const std::string why = states_[i].visits > 0 ? "none of its visits was the one asked for"
                                                  : "no such thread came there";
    note(fmt::format("{} never fired: {}", one_line(texts[i]), why));
  }
  return text;
}

}  // namespace unflake
