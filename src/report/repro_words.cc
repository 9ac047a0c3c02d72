#include "report/repro_words.h"

#include <fmt/format.h>

#include "report/style.h"

namespace unflake {
namespace {

// The longest lateness that most runs stood, of those that too few runs were made with to be sure.
const Dose* longest_harmless(const Repro& repro) {
  const Dose* longest = nullptr;
  for (const Dose& dose : repro.doses) {
    const bool is_failing = 2 * dose.failures.hits > dose.failures.runs;
    const bool is_between = dose.delay > repro.slack->passes && dose.delay < repro.slack->fails &&
                            dose.failures.runs > 0;
    if (!is_between || is_failing != repro.passes_under_plan) continue;
    if (longest == nullptr || dose.delay > longest->delay) longest = &dose;
  }
  return longest;
}

std::string known_of_less(const Repro& repro) {
  const Dose* dose = longest_harmless(repro);
  if (dose == nullptr) return "nothing shorter was tried";
  return fmt::format("with {} {} of {} failed, too few to be sure", format_duration(dose->delay),
                     dose->failures.hits, counted(dose->failures.runs, "run"));
}

std::string sentence_of(const Repro& repro) {
  const bool is_scarce_only = repro.plan.interventions.empty();
  switch (*repro.plausibility) {
    case Plausibility::flaw:
      return is_scarce_only ? "a flaw: a busy machine is as scarce"
                            : "a flaw: a busy machine is that late";
    case Plausibility::risk:
      return is_scarce_only ? "a risk: a badly overloaded machine is as scarce"
                            : "a risk: a badly overloaded machine is that late";
    case Plausibility::margin:
      break;
  }
  return repro.was_seen ? "only a machine that stands still is that late, but the failure was seen"
                        : "a margin, no flaw: only a machine that stands still is that late";
}

bool is_made_late(const Repro& repro) {
  return !repro.passes_under_plan && longest_delay(repro.plan) > Duration::zero();
}

std::string why_not_judged(const Repro& repro) {
  constexpr const char* question = "a flaw, a risk or a margin";
  if (!repro.slack)
    return fmt::format("{}, because how little lateness is enough was not measured", question);
  return fmt::format("{}, because no lateness was found that does no harm", question);
}

}  // namespace

std::string slack_words(const Repro& repro) {
  if (!repro.slack) return "";
  const std::string enough = format_duration(repro.slack->fails);
  if (repro.slack->passes == Duration::zero())
    return fmt::format("at most {}; {}", enough, known_of_less(repro));
  return fmt::format("{} ({} is not enough)", enough, format_duration(repro.slack->passes));
}

std::string margin_words(const Repro& repro) {
  if (!repro.slack) return "fails under the plan; how much less is enough was not measured";
  const std::string enough = format_duration(repro.slack->fails);
  if (repro.slack->passes == Duration::zero())
    return fmt::format("fails when {} late; {}", enough, known_of_less(repro));
  return fmt::format("holds until {} late, fails when {} late",
                     format_duration(repro.slack->passes), enough);
}

std::string plausibility_words(const Repro& repro) {
  if (!repro.plausibility) return is_made_late(repro) ? "not known: " + why_not_judged(repro) : "";
  std::string text = sentence_of(repro);
  if (repro.machine_lateness)
    text += fmt::format("; this one was late by up to {}, and by {} when it was made scarce",
                        format_duration(repro.machine_lateness->plain),
                        format_duration(repro.machine_lateness->scarce));
  return text;
}

}  // namespace unflake
