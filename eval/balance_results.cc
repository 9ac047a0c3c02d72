#include "balance_results.h"

#include "surroundings_json.h"

namespace unflake::eval {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BalanceAnswer::Value, site, kind, change, reason, now_us,
                                   proposed_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BalanceAnswer, test, error, values, notes, runs, elapsed_us,
                                   before_ms, saved_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SuiteAnswer, suite, error, runs, elapsed_us, tests)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Rerun, runs, failures, median_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckedProposal::Lowered, lines, rerun)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckedProposal, answer, as_proposed, lowered)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckedAtLoads, answer, idle, busy, one_core, own_busy,
                                   own_one_core)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SuiteMeasurement::Checked, test, before, after)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SuiteMeasurement, answer, tests)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BalanceSettings, checks, repeat, suite_runs, load_runs, jobs,
                                   with_fatb, with_suites, with_loads, real_time)

void to_json(json& out, const TimedMeasurement& one) {
  out = {{"program", one.program}, {"base", one.base}, {"proposals", one.proposals}};
  if (one.fatb) out["fatb"] = *one.fatb;
  if (one.at_loads) out["at_loads"] = *one.at_loads;
}

void from_json(const json& in, TimedMeasurement& one) {
  in.at("program").get_to(one.program);
  in.at("base").get_to(one.base);
  in.at("proposals").get_to(one.proposals);
  if (in.contains("fatb")) one.fatb = in["fatb"].get<CheckedProposal>();
  if (in.contains("at_loads")) one.at_loads = in["at_loads"].get<CheckedAtLoads>();
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BalanceResults, settings, where, programs, suites)

std::string balance_results_json(const BalanceResults& results) {
  return json_text(json(results), 1) + "\n";
}

Result<BalanceResults> parse_balance_results(const std::string& text, const std::string& path) {
  try {
    return parse_json_or_throw(text).get<BalanceResults>();
  } catch (const json::exception& error) {
    return usage_error(std::string("these are no results: ") + error.what(), path,
                       "measure again without --rewrite");
  }
}

}  // namespace unflake::eval
