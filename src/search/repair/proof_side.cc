#include "search/repair/proof_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/balance/balance_runs.h"
#include "search/reproduce/strategy.h"

namespace unflake {
namespace {

constexpr int factors[] = {1, 2, 4, 10};
constexpr int more_than_once = 2;

bool is_delay(const Intervention& what) {
  return what.action == Intervention::Action::delay && what.duration > Duration{};
}

std::string said_of(const std::string& headline, int runs) {
  return fmt::format("{} ({} run{})", headline, runs, runs == 1 ? "" : "s");
}

}  // namespace

Shown SideRuns::judge(const ExperimentResult& result, bool counts) {
  const Outcome& outcome = result.outcome;
  if (outcome.kind != OutcomeKind::timeout) longest = std::max(longest, outcome.duration);
  if (outcome.kind == OutcomeKind::skipped) {
    ++skipped_;
    return Shown::skipped;
  }
  if (!outcome.failed()) return Shown::pass;
  if (side.is_recorded(outcome)) return Shown::recorded;
  Failing& failing =
      (counts ? others_ : far_)[side.signature ? side.signature(outcome) : outcome.signature];
  ++failing.runs;
  failing.headline = headline_of(outcome);
  return Shown::other;
}

std::string SideRuns::new_failure(const SideRuns& other) const {
  for (const auto& [signature, failing] : others_)
    if (failing.runs >= more_than_once && !other.others_.contains(signature))
      return said_of(failing.headline, failing.runs);
  return "";
}

std::vector<std::string> SideRuns::seen_once(const SideRuns& other) const {
  std::vector<std::string> said;
  for (const auto& [signature, failing] : others_)
    if (failing.runs < more_than_once && !other.others_.contains(signature))
      said.push_back(failing.headline);
  return said;
}

std::vector<std::string> SideRuns::far_failures() const {
  std::vector<std::string> said;
  for (const auto& [signature, failing] : far_)
    said.push_back(said_of(failing.headline, failing.runs));
  return said;
}

Doses::Doses(const Repro& repro)
    : has_delays_(std::ranges::any_of(repro.plan.interventions, is_delay) &&
                  !repro.passes_under_plan),
      overloaded_(limits_of(repro.machine_lateness.value_or(MachineLateness{})).overloaded),
      slack_(repro.slack ? repro.slack->fails : Duration{}) {}

void Doses::learn(Duration of_plan) {
  of_plan_ = of_plan;
  if (slack_ > of_plan_) slack_ = of_plan_;
}

Duration Doses::bound() const {
  return std::max(overloaded_, needed() * 3 / 2);
}

Duration Doses::generous() const {
  return std::max<Duration>(4 * needed(), std::chrono::milliseconds(200));
}

std::vector<Duration> Doses::others() const {
  std::set<Duration> doses{bound()};
  for (const int factor : factors)
    if (factor * needed() < bound()) doses.insert(factor * needed());
  doses.erase(of_plan());
  return {doses.begin(), doses.end()};
}

std::vector<Duration> Doses::for_every_visit() const {
  std::set<Duration> doses;
  for (const int factor : {2, 10})
    if (factor * needed() <= bound()) doses.insert(factor * needed());
  if (doses.empty()) doses.insert(needed());
  return {doses.begin(), doses.end()};
}

Plan Doses::with_lateness(Plan plan, Duration lateness) const {
  if (of_plan_ <= Duration{}) return plan;
  const double factor =
      static_cast<double>(lateness.count()) / static_cast<double>(of_plan_.count());
  for (Intervention& what : plan.interventions)
    if (is_delay(what)) what.duration = scaled(what.duration, factor);
  return plan;
}

WholeRun run_whole_program(ProofSide& side, Duration timeout) {
  WholeRun seen;
  if (timeout <= Duration{}) return seen;
  const TestOrder& order = *side.whole;
  const auto result = side.executor.run(Experiment{order, {}, timeout});
  using End = ProcessResult::End;
  seen.has_ended =
      result && (result->process.end == End::exited || result->process.end == End::signalled);
  if (!seen.has_ended) return seen;
  for (size_t i = 0; i < order.all.size() && i < result->outcomes.size(); ++i) {
    if (!result->outcomes[i].failed()) continue;
    if (order.all[i]->id == side.test->id)
      seen.recorded_failed = true;
    else
      seen.others.insert(order.all[i]->id.name);
  }
  return seen;
}

std::optional<Found> search_anew(ProofSide& side, const HuntOptions& options, Duration bound) {
  Hunt hunt(side.executor, side.test, options, side.events);
  const Strategy* const chosen[] = {find_strategy("schedules"), find_strategy("guided")};
  if (hunt.prepare()) search(hunt, chosen);
  for (const Found& found : hunt.found()) {
    const bool is_too_late = found.slack && found.slack->fails > bound;
    const bool is_margin = found.plausibility == Plausibility::margin;
    if (!is_margin && !is_too_late && !found.passes_under_plan) return found;
  }
  return std::nullopt;
}

Plan at_every_visit(Plan plan) {
  for (Intervention& what : plan.interventions) {
    if (!is_delay(what)) continue;
    what.visits = Intervention::Visits::every;
    if (what.threads == Intervention::Threads::named && what.thread.text != "main")
      what.threads = Intervention::Threads::in_class;
  }
  return plan;
}

}  // namespace unflake
