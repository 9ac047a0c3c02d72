#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "balance_scores.h"
#include "figures.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

constexpr double fatb_share = 1.0 / 3;
constexpr double accuracy = 0.95;
constexpr double kept_promise = 0.9;
constexpr double surprising = 0.001;  // that two rates are the same
constexpr double unlikely = 0.05;
constexpr double chance_at_suites = 0.01;  // there are many tests
constexpr int64_t near_zero_us = 2000;

std::string share_with_interval(size_t some, size_t all) {
  if (all == 0) return "0 of 0";
  return fmt::format(
      "{} of {} (95 % interval {})", some, all,
      interval_text(exact_interval(static_cast<int64_t>(some), static_cast<int64_t>(all))));
}

std::string with_list(std::string text, const char* what, const std::vector<std::string>& names) {
  return names.empty() ? text : fmt::format("{}; {}: {}", text, what, join(names, ", "));
}

using Cases = std::vector<ProposalCase>;

std::vector<std::string> names_at(const Cases& cases, Place place) {
  std::vector<std::string> names;
  for (const ProposalCase& one : cases)
    if (one.place == place) names.push_back(join(one.lines, " and "));
  return names;
}

std::string spread_of_places(const Cases& cases) {
  std::vector<std::string> parts;
  for (const Place place : {Place::within, Place::below, Place::above, Place::none})
    parts.push_back(fmt::format("{} {}", names_at(cases, place).size(), to_string(place)));
  return join(parts, ", ");
}

std::vector<Score> accuracy_scores(const Cases& cases) {
  const auto within = names_at(cases, Place::within), below = names_at(cases, Place::below);
  std::string text = with_list(share_with_interval(within.size(), cases.size()), "above",
                               names_at(cases, Place::above));
  text = with_list(text, "nothing proposed", names_at(cases, Place::none));
  return {{"proposals within 10 % above the smallest value that holds", text, ">= 95 %",
           reaches(within.size(), cases.size(), accuracy)},
          {"proposals below it",
           with_list(share_with_interval(below.size(), cases.size()), "namely", below), "0",
           below.empty() && !cases.empty()}};
}

double mean_runs(const TimedMeasurement& one) {
  std::vector<double> runs;
  for (const CheckedProposal& proposal : one.proposals)
    if (proposal.answer.error.empty()) runs.push_back(proposal.answer.runs);
  return mean(runs);
}

// Programs for which both methods had something to search, and came to a value that holds: FaTB
// cannot raise one that is too short.
std::vector<Score> run_scores(const std::vector<MeasuredTimes>& all) {
  double ours = 0, theirs = 0;
  std::vector<double> ratios;
  std::vector<std::string> more, without_answer;
  for (const auto& [truth, result] : all) {
    if (lines_to_lower(*truth).empty() || !result->fatb || !result->fatb->answer.error.empty() ||
        mean_runs(*result) == 0)
      continue;
    if (!meets_tolerance(result->fatb->as_proposed, result->base)) {
      without_answer.push_back(truth->program);
      continue;
    }
    ours += mean_runs(*result);
    theirs += result->fatb->answer.runs;
    ratios.push_back(mean_runs(*result) / std::max(result->fatb->answer.runs, 1));
    if (ratios.back() > fatb_share)
      more.push_back(fmt::format("{} ({:.2f})", truth->program, ratios.back()));
  }
  if (ratios.empty()) return {};
  return {
      {"runs of a search, of those that FaTB's fixed 100 per value take",
       with_list(
           fmt::format("{:.0f} of {:.0f} ({:.2f}) over {} programs; each by itself: median {:.2f}, "
                       "worst {:.2f}",
                       ours, theirs, ours / theirs, ratios.size(), median(ratios),
                       quantile(ratios, 1)),
           "without those where FaTB's value does not hold", without_answer),
       "<= 1/3", ours <= fatb_share * theirs},
      {"programs that take at most a third of FaTB's runs",
       with_list(share_with_interval(ratios.size() - more.size(), ratios.size()), "others", more),
       ""}};
}

struct Expected {
  size_t all = 0, kinds = 0, unneeded = 0;
  std::vector<std::string> otherwise, still_long;
};

void count_answer(Expected& sum, const TimedTruth& truth, const BalanceAnswer& answer) {
  for (const TimedValue& value : truth.values) {
    const BalanceAnswer::Value* found = answer.at(value.line);
    const bool is_right = is_as_expected(value, answer);
    ++sum.all;
    sum.kinds += found && found->kind == value.kind;
    sum.unneeded += value.expect == "unneeded";
    if (is_right) continue;
    const std::string text = fmt::format("{} ({})", value.line, found ? found->change : "missing");
    (value.expect == "unneeded" ? sum.still_long : sum.otherwise).push_back(text);
  }
}

std::vector<Score> expectation_scores(const std::vector<MeasuredTimes>& all) {
  Expected sum;
  for (const auto& [truth, result] : all)
    for (const CheckedProposal& proposal : result->proposals)
      count_answer(sum, *truth, proposal.answer);
  const size_t others = sum.all - sum.unneeded;
  return {
      {"values that are not needed, brought near zero",
       with_list(share_with_interval(sum.unneeded - sum.still_long.size(), sum.unneeded), "not",
                 sum.still_long),
       "all", sum.still_long.empty() && sum.unneeded > 0},
      {"other values shortened, raised or left alone as they should be",
       with_list(share_with_interval(others - sum.otherwise.size(), others), "not", sum.otherwise),
       ""},
      {"kinds of values told right", share_with_interval(sum.kinds, sum.all), ""}};
}

Score fatb_score(const std::vector<MeasuredTimes>& all) {
  Cases cases;
  for (const auto& [truth, result] : all)
    if (result->fatb)
      for (ProposalCase& one : cases_of(*truth, *result->fatb, result->base))
        cases.push_back(std::move(one));
  return {"FaTB's proposals, judged alike", spread_of_places(cases), ""};
}

std::vector<Score> suite_scores(const std::vector<SuiteMeasurement>& suites) {
  if (suites.empty()) return {};
  const SuiteTotals totals = totals_of(suites);
  const double ratio = totals.claimed_s > 0 ? totals.measured_s / totals.claimed_s : 0;
  return {
      {"suite mode: seconds saved per run of the suites, measured",
       fmt::format("{:.2f} s of {:.2f} s claimed ({:.2f}), {} tests in {} suites",
                   totals.measured_s, totals.claimed_s, ratio, totals.tests, suites.size()),
       ">= 90 % of the claim", ratio >= kept_promise},
      {"suite mode: tests that fail more often than before",
       with_list(share_with_interval(totals.worse.size(), totals.tests), "namely", totals.worse),
       "0", totals.worse.empty() && totals.tests > 0}};
}

// A single failure of so few runs proves nothing.
bool holds_at_load(const Rerun& rerun, const Rerun& own) {
  return rerun.failures <= 1 ||
         fisher_more_often(rerun.failures, rerun.runs, own.failures, own.runs) >= unlikely;
}

std::vector<Score> load_scores(const std::vector<MeasuredTimes>& all) {
  size_t programs = 0;
  std::vector<std::string> bad;
  for (const auto& [truth, result] : all) {
    if (!result->at_loads || !result->at_loads->answer.error.empty()) continue;
    const CheckedAtLoads& at = *result->at_loads;
    ++programs;
    if (!holds_at_load(at.busy, at.own_busy))
      bad.push_back(fmt::format("{} busy ({}/{})", truth->program, at.busy.failures, at.busy.runs));
    if (!holds_at_load(at.one_core, at.own_one_core))
      bad.push_back(fmt::format("{} on one core ({}/{})", truth->program, at.one_core.failures,
                                at.one_core.runs));
  }
  if (programs == 0) return {};
  return {{"proposals for all loads that hold when busy and on one core, of two each",
           with_list(share_with_interval(2 * programs - bad.size(), 2 * programs), "not", bad),
           ""}};
}

}  // namespace

int tolerated_failures(int runs) {
  return static_cast<int>(tolerated_rate * runs);
}

bool meets_tolerance(const Rerun& rerun, const Rerun& base) {
  if (rerun.runs == 0) return false;
  if (base.failures == 0) return rerun.failures <= tolerated_failures(rerun.runs);
  return fisher_more_often(rerun.failures, rerun.runs, base.failures, base.runs) >= surprising;
}

bool has_failed(const Rerun& rerun, const Rerun& base, int checks) {
  if (base.failures > 0) return !meets_tolerance(rerun, base);
  return rerun.failures > tolerated_failures(checks);
}

std::string_view to_string(Place place) {
  constexpr std::string_view words[] = {"without a proposal", "below", "within", "above"};
  return words[static_cast<size_t>(place)];
}

std::vector<std::vector<std::string>> lines_to_lower(const TimedTruth& truth) {
  std::vector<std::vector<std::string>> all;
  if (truth.together) all.emplace_back();
  for (const TimedValue& value : truth.values) {
    if (truth.together) all.front().push_back(value.line);
    if (!truth.together && value.needs) all.push_back({value.line});
  }
  return all;
}

std::vector<ProposalCase> cases_of(const TimedTruth& truth, const CheckedProposal& proposal,
                                   const Rerun& base) {
  Cases cases;
  for (const auto& lines : lines_to_lower(truth)) {
    ProposalCase one{truth.program, lines, Place::none};
    const auto lowered =
        std::ranges::find(proposal.lowered, lines, &CheckedProposal::Lowered::lines);
    if (proposal.as_proposed.runs > 0 && !meets_tolerance(proposal.as_proposed, base))
      one.place = Place::below;
    else if (lowered != proposal.lowered.end())
      one.place = meets_tolerance(lowered->rerun, base) ? Place::above : Place::within;
    cases.push_back(std::move(one));
  }
  return cases;
}

bool is_as_expected(const TimedValue& truth, const BalanceAnswer& answer) {
  const BalanceAnswer::Value* value = answer.at(truth.line);
  if (value == nullptr) return false;
  if (truth.expect == "unneeded")
    return value->change == "shorten" && value->proposed_us <= near_zero_us;
  if (truth.expect == "shorten" || truth.expect == "raise") return value->change == truth.expect;
  return !value->is_changed();
}

SuiteTotals totals_of(const std::vector<SuiteMeasurement>& suites) {
  SuiteTotals totals;
  for (const SuiteMeasurement& suite : suites)
    for (const SuiteMeasurement::Checked& test : suite.tests) {
      const auto claimed = std::ranges::find(suite.answer.tests, test.test, &BalanceAnswer::test);
      if (claimed != suite.answer.tests.end()) totals.claimed_s += claimed->saved_ms / 1000;
      totals.measured_s += (test.before.median_ms - test.after.median_ms) / 1000;
      ++totals.tests;
      const double chance = fisher_more_often(test.after.failures, test.after.runs,
                                              test.before.failures, test.before.runs);
      if (chance < chance_at_suites)
        totals.worse.push_back(fmt::format("{} ({}/{} instead of {}/{})", test.test,
                                           test.after.failures, test.after.runs,
                                           test.before.failures, test.before.runs));
    }
  return totals;
}

std::vector<Score> balance_scores(const std::vector<MeasuredTimes>& all,
                                  const BalanceResults& results) {
  Cases cases;
  for (const auto& [truth, result] : all)
    for (const CheckedProposal& proposal : result->proposals)
      for (ProposalCase& one : cases_of(*truth, proposal, result->base))
        cases.push_back(std::move(one));
  std::vector<Score> scores = accuracy_scores(cases);
  for (const auto& more :
       {run_scores(all), expectation_scores(all), suite_scores(results.suites), load_scores(all)})
    scores.insert(scores.end(), more.begin(), more.end());
  if (results.settings.with_fatb) scores.push_back(fatb_score(all));
  return scores;
}

}  // namespace unflake::eval
