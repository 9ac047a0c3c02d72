#include "cli/replay_result.h"

#include <fmt/format.h>

#include "report/findings.h"
#include "report/repro_words.h"
#include "report/trace_json.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

std::vector<std::string> texts_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Intervention& what : plan.interventions)
    texts.push_back(to_string(what, plan.interventions));
  return texts;
}

std::string share(const Count& count) {
  if (count.runs == 0) return "not measured";
  return fmt::format("{} of {} ({}, 95 % interval {})", count.hits, counted(count.runs, "run"),
                     percent(static_cast<double>(count.hits) / count.runs),
                     interval_text(exact_interval(count.hits, count.runs)));
}

}  // namespace

void ReplayResult::add(const ExperimentResult& result, const CodeView& code) {
  totals_.add(result);
  const Outcome& outcome = result.outcome;
  if (outcome.kind == OutcomeKind::skipped) {
    ++skipped_;
  } else if (!outcome.failed()) {
    ++passed_;
  } else if (is_same_failure(repro_, outcome, code)) {
    ++as_recorded_;
  } else {
    Other& other = others_[outcome.signature];
    other.headline = failure_headline(outcome);
    ++other.runs;
  }
}

bool ReplayResult::says_something(const Plan& plan) const {
  const bool has_interventions = !plan.interventions.empty();
  return skipped_ < totals_.runs() && (!has_interventions || totals_.any_fired(plan.interventions));
}

std::string ReplayResult::text(const Plan& plan, const Style& style) const {
  const std::vector<std::string> texts = texts_of(plan);
  const Count now{as_recorded_, totals_.runs()};
  std::string text = "\n" + totals_.table(plan.interventions, texts);
  text += fmt::format("\n{} failed as recorded: {} [{}]\n", share(now),
                      one_line(headline(repro_.failure)), repro_.signature);
  for (const auto& [signature, other] : others_)
    text += fmt::format("{} failed otherwise: {} [{}]\n", counted(other.runs, "run"),
                        one_line(other.headline), signature);
  if (skipped_ > 0) text += fmt::format("{} skipped the test\n", counted(skipped_, "run"));
  text += fmt::format("when it was recorded: {} under the plan, {} without\n",
                      share(repro_.with_plan), share(repro_.without_plan));
  if (const std::string verdict = plausibility_words(repro_); !verdict.empty())
    text += (repro_.plausibility ? "" : "verdict: ") + verdict + "\n";
  if (repro_.passes_under_plan)
    text += "under this plan the test passes: the plan shows the order that the test relies on\n";
  return text + totals_.doubts(plan.interventions, texts, style);
}

std::string ReplayResult::json(const std::string& path, const Relocation& relocation,
                               const std::vector<CodeNote>& code_notes) const {
  using Json = nlohmann::ordered_json;
  const Interval interval = exact_interval(as_recorded_, totals_.runs());
  Json json = {
      {"format", 1},
      {"repro", printable(path)},
      {"test", printable(to_string(repro_.test))},
      {"signature", repro_.signature},
      {"passes_under_plan", repro_.passes_under_plan},
      {"plausibility", repro_.plausibility ? Json(to_string(*repro_.plausibility)) : Json(nullptr)},
      {"is_margin", repro_.is_margin()},
      {"runs", totals_.runs()},
      {"failed_as_recorded", as_recorded_},
      {"interval_95", {interval.low, interval.high}},
      {"passed", passed_},
      {"skipped", skipped_},
      {"other_failures", Json::array()},
      {"notes", Json::array()},
      {"code_notes", code_notes_json(code_notes)},
      {"interventions", Json::array()}};
  for (const auto& [signature, other] : others_)
    json["other_failures"].push_back(
        {{"signature", signature}, {"headline", printable(other.headline)}, {"runs", other.runs}});
  for (const Relocated& note : relocation.notes)
    json["notes"].push_back({{"kind", to_string(note.kind)},
                             {"from", printable(note.from)},
                             {"to", printable(note.to)},
                             {"text", printable(note.text)}});
  const std::vector<std::string> texts = texts_of(relocation.plan);
  for (size_t i = 0; i < texts.size() && i < totals_.states().size(); ++i) {
    const TracedIntervention& state = totals_.states()[i];
    json["interventions"].push_back({{"intervention", printable(texts[i])},
                                     {"visits", state.visits},
                                     {"fired", state.fired},
                                     {"added_us", state.added.count()}});
  }
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
