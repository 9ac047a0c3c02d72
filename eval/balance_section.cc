#include <fmt/format.h>

#include "balance_section.h"
#include "markdown.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake::eval {
namespace {

constexpr const char* explanation = R"(

`make eval-balance` runs `unflake balance` on every program of [zoo/timed](../zoo/timed), and reruns the tests with what it proposes. The truth that
stands beside a program names a threshold, but what counts is what reruns show on this machine:
- *Within*: with the proposed values at most 0.1 % of the reruns fail, and with one of them divided by 1.1 (the others as proposed) more do. *Below*: more
  fail already as proposed. *Above*: not even with the value divided. A test that fails anyway is compared with itself (Fisher's exact test, 0.1 %).
  Reruns end as soon as too many have failed.
- *Runs* are all that a search makes, profiling and confirmation too. FaTB is the paper's search, for the same values on the same machine: 100 runs for
  each, halving until what holds is within 10 % of what does not.
- Waits of zero are not lowered further: a value that is not needed must come out below 2 ms.
)";

std::string settings_text(const BalanceResults& results) {
  const BalanceSettings& how = results.settings;
  BalanceSettings usual;
  usual.real_time = how.real_time;
  return fmt::format(
      "\n{}\n{} searches of each program, {} reruns of a proposal, {} of each test of a suite, {} "
      "at each load; {} programs side by side.\n{}{}",
      to_string(results.where), how.repeat, how.checks, how.suite_runs, how.load_runs, how.jobs,
      how.real_time
          ? "All but the loads and what computes ran with real-time priority, so that other work "
            "on the machine did not disturb.\n"
          : "Other work on the machine may have disturbed.\n",
      how == usual ? "" : "These are not the settings of a plain `make eval`.\n");
}

std::string rate(const Rerun& rerun) {
  return rerun.runs == 0 ? "" : fmt::format("{}/{}", rerun.failures, rerun.runs);
}

std::string time_of(const BalanceAnswer& answer, const std::string& line) {
  const BalanceAnswer::Value* value = answer.at(line);
  if (value == nullptr) return "not found";
  if (!value->is_changed()) return value->change == "keep" ? "keep" : "not searched";
  return format_duration(Duration(value->proposed_us));
}

std::string runs_of(const CheckedProposal& proposal) {
  return proposal.answer.error.empty() ? std::to_string(proposal.answer.runs) : "";
}

const CheckedProposal::Lowered* lowered_at(const CheckedProposal& proposal,
                                           const std::string& line) {
  for (const CheckedProposal::Lowered& lowered : proposal.lowered)
    for (const std::string& one : lowered.lines)
      if (one == line) return &lowered;
  return nullptr;
}

std::string place_text(const TimedTruth& truth, const CheckedProposal& proposal, const Rerun& base,
                       const TimedValue& value) {
  for (const ProposalCase& one : cases_of(truth, proposal, base))
    for (const std::string& line : one.lines)
      if (line == value.line)
        return one.place == Place::within ? "within"
                                          : "**" + std::string(to_string(one.place)) + "**";
  return is_as_expected(value, proposal.answer) ? "as expected" : "**not as expected**";
}

std::string value_rows(const MeasuredTimes& one, const TimedValue& value) {
  std::string text;
  const auto add = [&](const CheckedProposal& proposal, const std::string& by) {
    const CheckedProposal::Lowered* lowered = lowered_at(proposal, value.line);
    text += row({value.line, value.call, value.spread, format_duration(value.now),
                 value.needs ? format_duration(*value.needs) : value.expect, by,
                 time_of(proposal.answer, value.line), rate(proposal.as_proposed),
                 lowered ? rate(lowered->rerun) : "",
                 place_text(*one.truth, proposal, one.result->base, value), runs_of(proposal)});
  };
  for (const CheckedProposal& proposal : one.result->proposals) add(proposal, "unflake");
  if (one.result->fatb) add(*one.result->fatb, "FaTB");
  return text;
}

std::string values_table(const std::vector<MeasuredTimes>& all) {
  std::string text =
      "\n### Values\n\n*Needs* is the threshold that follows from the program, or what should "
      "become of the value. Of failures: as proposed, and with this value divided by 1.1.\n\n" +
      table_head({"value", "call", "spread", "now", "needs", "by", "proposed", "as proposed",
                  "divided", "place", "runs"});
  for (const MeasuredTimes& one : all)
    for (const TimedValue& value : one.truth->values) text += value_rows(one, value);
  return text;
}

std::string loads_table(const std::vector<MeasuredTimes>& all) {
  std::string rows;
  for (const auto& [truth, result] : all) {
    if (!result->at_loads) continue;
    const CheckedAtLoads& at = *result->at_loads;
    std::vector<std::string> proposed;
    for (const BalanceAnswer::Value& value : at.answer.values)
      if (value.is_changed()) proposed.push_back(format_duration(Duration(value.proposed_us)));
    rows += row({truth->program, at.answer.error.empty() ? join(proposed, ", ") : at.answer.error,
                 rate(at.idle), rate(at.busy), rate(at.own_busy), rate(at.one_core),
                 rate(at.own_one_core), std::to_string(at.answer.runs)});
  }
  if (rows.empty()) return "";
  return "\n### Loads\n\nWhat `unflake balance` proposes with all loads in mind, and how often the "
         "test fails with it; *own* is with its own values.\n\n" +
         table_head({"program", "proposed", "idle", "busy", "busy, own", "one core",
                     "one core, own", "runs"}) +
         rows;
}

std::string suites_table(const std::vector<SuiteMeasurement>& suites) {
  if (suites.empty()) return "";
  std::string text =
      "\n### Suites\n\n`unflake balance SUITE --all`, and the median run of each test before and "
      "after, in ms.\n\n" +
      table_head(
          {"test", "claimed: saved", "before", "after", "saved", "failed before", "failed after"});
  for (const SuiteMeasurement& suite : suites) {
    if (!suite.answer.error.empty()) text += row({suite.answer.suite, suite.answer.error});
    for (const SuiteMeasurement::Checked& test : suite.tests) {
      double claimed = 0;
      for (const BalanceAnswer& answer : suite.answer.tests)
        if (answer.test == test.test) claimed = answer.saved_ms;
      text += row({test.test, fmt::format("{:.1f}", claimed),
                   fmt::format("{:.1f}", test.before.median_ms),
                   fmt::format("{:.1f}", test.after.median_ms),
                   fmt::format("{:.1f}", test.before.median_ms - test.after.median_ms),
                   rate(test.before), rate(test.after)});
    }
  }
  return text;
}

std::string errors_text(const std::vector<MeasuredTimes>& all) {
  std::string text;
  for (const auto& [truth, result] : all)
    for (const CheckedProposal& proposal : result->proposals)
      if (!proposal.answer.error.empty())
        text += fmt::format("- {}: {}\n", truth->program, cell(proposal.answer.error));
  return text.empty() ? "" : "\nWithout an answer:\n\n" + text;
}

}  // namespace

std::string balance_section(const BalanceResults& results, const std::vector<MeasuredTimes>& all,
                            const std::vector<std::string>& not_measured) {
  const std::string missing =
      not_measured.empty() ? "" : fmt::format("Not measured: {}.\n", join(not_measured, ", "));
  return balance_heading + std::string(explanation) + settings_text(results) + missing + "\n" +
         targets_text(balance_scores(all, results)) + errors_text(all) + values_table(all) +
         loads_table(all) + suites_table(results.suites);
}

}  // namespace unflake::eval
