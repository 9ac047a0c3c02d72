#include "search/reproduce/goal.h"

#include <algorithm>

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

}  // namespace unflake
