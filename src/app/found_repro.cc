#include "app/found_repro.h"

#include <algorithm>

#include "app/project.h"
#include "app/repro_file.h"
#include "repro/relocation.h"
#include "run/scarcity.h"
#include "search/reproduce/strategy.h"
#include "trace/program_code.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration probe_time = 60ms;  // under each of the conditions

// A hunt counts hits; a repro counts failures.
Count failures_of(const Found& found, const Count& hits) {
  return found.passes_under_plan ? Count{hits.runs - hits.hits, hits.runs} : hits;
}

}  // namespace

Repro repro_of(const Found& found, OneTest& one, uint64_t seed) {
  Repro repro;
  repro.test = one.test().id;
  const TargetRecord target = record_of(one.target(), one.test(), one.project());
  repro.framework = target.framework;
  repro.target_path = target.path;
  repro.target_argv = target.argv;
  repro.outcome = found.outcome.kind;
  if (!found.outcome.failures.empty()) repro.failure = found.outcome.failures.front();
  repro.signature = found.outcome.signature;
  repro.plan = found.trial.plan;
  repro.digest = found.digest;
  repro.conditions = found.trial.conditions;
  repro.passes_under_plan = found.passes_under_plan;
  repro.with_plan = failures_of(found, found.with_plan);
  repro.without_plan = failures_of(found, found.without_plan);
  repro.candidates = found.candidates;
  repro.slack = found.slack;
  repro.doses = found.doses;
  for (Dose& dose : repro.doses) dose.failures = failures_of(found, dose.failures);
  repro.plausibility = found.plausibility;
  repro.machine_lateness = found.machine_lateness;
  repro.was_seen = found.was_seen;
  repro.timeout = found.timeout;
  repro.strategy = found.strategy;
  repro.reason = found.trial.why;
  repro.seed = seed;
  repro.search_runs = found.search_runs;
  const Surroundings surroundings = survey(one.project(), one.launcher());
  repro.commit = surroundings.commit;
  repro.machine = surroundings.machine;
  repro.unflake_version = surroundings.unflake_version;
  repro.found = std::chrono::system_clock::now();
  return repro;
}

void describe(Repro& repro, const Profile& profile, const OneTest& one) {
  if (profile.model() == nullptr) return;
  Trace seen = *profile.model()->trace;
  for (const ExperimentResult& run : profile.runs)
    if (run.trace) add_names(seen, *run.trace);
  describe_sites(repro, seen, program_code(seen, one.project_code()));
}

std::optional<MachineLateness> machine_lateness() {
  const auto plain = probe_lateness({}, probe_time);
  if (!plain) return std::nullopt;
  MachineLateness seen{*plain, *plain};
  for (const Conditions& conditions : scarce_conditions())
    if (const auto late = probe_lateness(conditions, probe_time))
      seen.scarce = std::max(seen.scarce, *late);
  return seen;
}

}  // namespace unflake
