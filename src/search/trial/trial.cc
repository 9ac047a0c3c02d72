#include "search/trial/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "util/paths.h"

namespace unflake {

bool acts(const Intervention& intervention) {
  return intervention.action != Intervention::Action::watch;
}

bool has_fired(const Plan& plan, const ExperimentResult& result) {
  bool has_delays = false;
  for (size_t i = 0; i < plan.interventions.size(); ++i) {
    if (!acts(plan.interventions[i])) continue;
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
  std::string text = to_string(trial.conditions);
  for (const Intervention& intervention : trial.plan.interventions)
    text += " " + intervention.executable + "!" + to_string(intervention, trial.plan.interventions);
  return text;
}

std::string headline_of(const Outcome& outcome) {
  if (outcome.failures.empty()) return std::string(to_string(outcome.kind));
  return headline(outcome.failures.front());
}

bool ran_into_delays(const ExperimentResult& result) {
  if (result.outcome.kind != OutcomeKind::timeout || !result.trace) return false;
  Duration added{};
  for (const TracedIntervention& state : result.trace->interventions) added += state.added;
  return 2 * added > result.outcome.duration;
}

Duration lateness_in(const ExperimentResult& result) {
  if (!result.trace) return Duration::zero();
  Duration failed = Duration::max();
  for (const TracedFailure& failure : result.trace->failures)
    if (failure.kind != "thrown before") failed = std::min(failed, failure.at);
  std::map<uint32_t, Duration> late;
  for (const TracedCall& call : result.trace->calls) {
    if (!call.is_intervention || call.enter >= failed) continue;
    const auto asked = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(call.value));
    late[call.thread] += call.unfinished ? asked : call.exit - call.enter;
  }
  Duration most{};
  for (const auto& [thread, added] : late) most = std::max(most, added);
  return most;
}

bool failed_at(const ExperimentResult& result, const Failure& wanted) {
  if (!result.trace) return false;
  const auto is_there = [&](const Frame& frame) { return is_same_line(frame, wanted); };
  return std::ranges::any_of(result.trace->failures, [&](const TracedFailure& failure) {
    return std::ranges::any_of(failure.stack.frames, [&](const TracedFrame& frame) {
      return std::ranges::any_of(frame.source, is_there);
    });
  });
}

bool names_line(std::string_view text, const Failure& wanted) {
  const std::string line = std::to_string(wanted.line);
  const std::string file = base_name(wanted.file);
  if (file.empty()) return false;
  for (const std::string_view between : {":", "(", " on line ", " line ", ", line "}) {
    const std::string name = file + std::string(between) + line;
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const size_t end = at + name.size();
      if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
    }
  }
  return false;
}

}  // namespace unflake
