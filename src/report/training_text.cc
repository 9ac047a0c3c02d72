#include "report/detect_text.h"

#include <fmt/format.h>

#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

std::string part_text(int64_t part, int64_t whole) {
  const double share = whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  return fmt::format("{}/{} {}", part, whole, percent(share));
}

void add_set(Table& table, const std::string& name, const ExposedShares& shares,
             const TrainedSet* trained) {
  const auto number = [](int64_t count) { return std::to_string(count); };
  table.add({name, trained ? number(static_cast<int64_t>(trained->functions.size())) : "",
             trained ? number(trained->count(&LearnedFunction::is_solo)) : "",
             trained ? number(trained->count(&LearnedFunction::is_cryptic)) : "",
             trained ? number(trained->count_remaining()) : "",
             part_text(shares.flaky_exposed, shares.flaky), part_text(shares.exposed, shares.all)});
}

std::string sets_text(const TrainingReport& report) {
  Table table({"SET", "FUNCTIONS", "SOLO", "CRYPTIC", "LEFT", "FLAKY EXPOSED", "ALL EXPOSED"});
  add_set(table, "known before", report.known, nullptr);
  if (!report.global.functions.empty()) {
    add_set(table, "learned", report.global.shares, &report.global);
    add_set(table, "learned, what is left", report.global.remaining, nullptr);
  }
  for (const TrainedSet& cause : report.causes) {
    add_set(table, cause.name, cause.shares, &cause);
    add_set(table, cause.name + ", what is left", cause.remaining, nullptr);
  }
  if (!report.causes.empty())
    add_set(table, "all root causes together", report.union_of_causes, nullptr);
  return table.text();
}

std::string range_text(const CrossValidation& validation, double (ExposedShares::*share)() const) {
  return fmt::format("{} (from {} to {})", percent(validation.mean(share)),
                     percent(validation.least(share)), percent(validation.most(share)));
}

std::string validation_text(const CrossValidation& validation) {
  if (validation.folds.empty()) return "";
  return fmt::format(
      "\n{}-fold cross-validation, on tests that a set was not learned from:\n"
      "  flaky tests exposed {}\n  all tests exposed {}\n",
      validation.folds.size(), range_text(validation, &ExposedShares::of_flaky),
      range_text(validation, &ExposedShares::of_all));
}

std::string fate_of(const LearnedFunction& learned) {
  if (learned.is_solo) return learned.is_cryptic ? "solo, cryptic" : "solo";
  return learned.is_cryptic ? "cryptic" : "";
}

std::string functions_of_set(const TrainedSet& set, const std::string& title, const Style& style) {
  if (set.functions.empty()) return "";
  Table table({"FUNCTION", "KIND", "ROOT CAUSE", "FLAKY", "ALL", "GROUPS", "LEFT OUT"});
  for (const LearnedFunction& one : set.functions)
    table.add(
        {one.function.name, std::string(to_string(one.function.kind)),
         one.cause.empty() ? "-" : one.cause, part_text(one.alone.flaky_exposed, one.alone.flaky),
         part_text(one.alone.exposed, one.alone.all), std::to_string(one.groups), fate_of(one)});
  return fmt::format("\n{}\n", style.paint(Tone::faint, one_line(title))) + table.text();
}

using Json = nlohmann::ordered_json;

Json shares_json(const ExposedShares& shares) {
  return {{"flaky_exposed", shares.flaky_exposed},
          {"flaky", shares.flaky},
          {"exposed", shares.exposed},
          {"all", shares.all}};
}

Json set_json(const TrainedSet& set) {
  Json functions = Json::array();
  for (const LearnedFunction& one : set.functions)
    functions.push_back({{"kind", to_string(one.function.kind)},
                         {"name", printable(one.function.name)},
                         {"root_cause", printable(one.cause)},
                         {"alone", shares_json(one.alone)},
                         {"groups", one.groups},
                         {"solo", one.is_solo},
                         {"cryptic", one.is_cryptic}});
  return {{"name", printable(set.name)},
          {"functions", std::move(functions)},
          {"shares", shares_json(set.shares)},
          {"remaining", shares_json(set.remaining)}};
}

}  // namespace

std::string training_text(const TrainingReport& report, const Style& style) {
  std::string text =
      fmt::format("{}, {} of them flaky, {} with a known root cause\n\n",
                  counted(report.known.all, "traced test"), report.known.flaky, report.labelled);
  text += sets_text(report) + validation_text(report.validation);
  text += functions_of_set(report.global, "learned from all flaky tests", style);
  for (const TrainedSet& cause : report.causes)
    text += functions_of_set(cause, "learned from those due to " + cause.name, style);
  if (!report.global.functions.empty())
    text += fmt::format(
        "\nSolo: exposes flaky tests of at most one {}. Cryptic: no known root cause explains it.\n"
        "Both are left out.\n",
        report.groups);
  for (const std::string& note : report.notes)
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), one_line(note));
  return text;
}

std::string training_json(const TrainingReport& report) {
  Json json = {{"format", 1},
               {"labelled", report.labelled},
               {"groups", report.groups},
               {"known", shares_json(report.known)},
               {"global", set_json(report.global)},
               {"causes", Json::array()},
               {"union_of_causes", shares_json(report.union_of_causes)},
               {"folds", Json::array()},
               {"notes", Json::array()}};
  for (const TrainedSet& cause : report.causes) json["causes"].push_back(set_json(cause));
  for (const CrossValidation::Fold& fold : report.validation.folds)
    json["folds"].push_back({{"functions", fold.functions}, {"shares", shares_json(fold.shares)}});
  for (const std::string& note : report.notes) json["notes"].push_back(printable(note));
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
