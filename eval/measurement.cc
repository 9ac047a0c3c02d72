#include "measurement.h"

#include "surroundings_json.h"

namespace unflake::eval {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Search, strategies, found, is_truth, is_inverted, says_broken,
                                   found_by, failure, plan, runs, all_runs, elapsed_us,
                                   slack_passes_us, slack_fails_us, notes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Replays, runs, as_recorded, otherwise)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Explained, cause, critical, critical_caller, barrier,
                                   barrier_caller, elapsed_us, contradictions)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reruns, runs, hits, elapsed_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measurement, program, search, replays, busy_replays, explained,
                                   compared, reruns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EvalSettings, replays, jobs, reruns, rerun_jobs, busy, budget_us,
                                   strategy_budget_us, with_strategies)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Results, settings, where, programs)

std::string results_json(const Results& results) {
  return json_text(json(results), 1) + "\n";
}

Result<Results> parse_results(const std::string& text, const std::string& path) {
  try {
    return parse_json_or_throw(text).get<Results>();
  } catch (const json::exception& error) {
    return usage_error(std::string("these are no results: ") + error.what(), path,
                       "measure again without --rewrite");
  }
}

}  // namespace unflake::eval
