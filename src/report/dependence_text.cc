#include "report/detect_text.h"

#include <fmt/format.h>

#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using DependenceJson = nlohmann::ordered_json;
using Kind = OrderRelation::Kind;

std::vector<std::string> names_of(const std::vector<std::shared_ptr<const Test>>& tests) {
  std::vector<std::string> names;
  for (const auto& test : tests) names.push_back(printable(test->id.name));
  return names;
}

std::vector<std::string> printable_all(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(printable(text));
  return all;
}

std::string share_of(const Count& count) {
  return fmt::format("{} of {}", count.hits, counted(count.runs, "run"));
}

DependenceJson json_of_count(const Count& count) {
  const Interval interval = count.interval();
  return {{"failures", count.hits},
          {"runs", count.runs},
          {"interval_95", {interval.low, interval.high}}};
}

std::string_view word_of_kind(Kind kind) {
  return kind == Kind::victim ? "victim" : "brittle";
}

std::string relation_lines(const OrderRelation& relation, const Style& style) {
  const bool is_victim = relation.kind == Kind::victim;
  std::string text =
      fmt::format("{} {}\n", style.paint(Tone::bad, is_victim ? "VICTIM " : "BRITTLE"),
                  order_sentence(relation));
  text += detail_line(fmt::format("failed in {} {}, in {} alone", share_of(relation.behind_makers),
                                  is_victim ? "after it" : "after the state-setter",
                                  share_of(relation.alone)));
  if (!relation.undoers.empty())
    text += detail_line(fmt::format("{} {}", is_victim ? "cleaned up by" : "undone by",
                                    join(names_of(relation.undoers), ", ")));
  if (!relation.failure.file.empty() || !relation.failure.message.empty())
    text += detail_line(one_line(headline(relation.failure)));
  return text;
}

std::string notes_as_lines(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string totals(const OrderReport& report) {
  return fmt::format("{} in {}; {:.0f} % of all pairs ran both ways round\n",
                     counted(static_cast<long long>(report.tests), "test"),
                     counted(report.orders, "order"), 100 * report.pairs_seen) +
         fmt::format(
             "{} of tests in {}: as many as {:.1f} runs of the suite\n",
             counted(report.test_runs, "run"),
             report.processes == 1 ? "1 process" : fmt::format("{} processes", report.processes),
             report.suite_runs());
}

}  // namespace

std::string order_sentence(const OrderRelation& relation) {
  const std::string makers = join(names_of(relation.makers), " and ");
  const std::string name = printable(relation.test->id.name);
  if (relation.kind == Kind::victim)
    return fmt::format("{} fails after {} and passes alone", name, makers);
  return fmt::format("{} fails alone and passes after {}", name, makers);
}

std::string orders_text(const OrderReport& report, const Style& style) {
  std::string text;
  for (const OrderRelation& relation : report.relations) text += relation_lines(relation, style);
  for (const UnrelatedFlake& flake : report.flakes) {
    text += fmt::format("{} {} fails now and then, whatever ran before it\n",
                        style.paint(Tone::doubtful, "FLAKY  "), printable(flake.test->id.name));
    text += detail_line(fmt::format("failed in {} alone, in {} with the others",
                                    share_of(flake.alone), share_of(flake.in_orders)));
  }
  if (report.relations.empty())
    text += fmt::format("{} that a test depends on what ran before it\n",
                        style.paint(Tone::good, "no sign"));
  text += (text.empty() ? "" : "\n") + totals(report) + notes_as_lines(report.notes);
  if (!report.is_complete)
    text += fmt::format("{}: the time or the runs ended before the search did\n",
                        style.paint(Tone::doubtful, "note"));
  return text;
}

std::string orders_json(const OrderReport& report) {
  DependenceJson json = {{"format", 1},
                         {"tests", report.tests},
                         {"orders", report.orders},
                         {"pairs_seen", report.pairs_seen},
                         {"processes", report.processes},
                         {"test_runs", report.test_runs},
                         {"suite_runs", report.suite_runs()},
                         {"is_complete", report.is_complete},
                         {"relations", DependenceJson::array()},
                         {"flakes", DependenceJson::array()},
                         {"notes", printable_all(report.notes)}};
  for (const OrderRelation& relation : report.relations) {
    const bool is_victim = relation.kind == Kind::victim;
    json["relations"].push_back(
        {{"kind", word_of_kind(relation.kind)},
         {"test", printable(relation.test->id.name)},
         {is_victim ? "polluters" : "state_setters", names_of(relation.makers)},
         {is_victim ? "cleaners" : "undone_by", names_of(relation.undoers)},
         {"arrangement", to_string(relation.arrangement)},
         {"behind_them", json_of_count(relation.behind_makers)},
         {"alone", json_of_count(relation.alone)},
         {"signature", relation.signature},
         {"failure", printable(headline(relation.failure))}});
  }
  for (const UnrelatedFlake& flake : report.flakes)
    json["flakes"].push_back({{"test", printable(flake.test->id.name)},
                              {"alone", json_of_count(flake.alone)},
                              {"in_orders", json_of_count(flake.in_orders)}});
  return json_text(json, 1) + "\n";
}

std::string factor_sentence(const FactorFinding& finding) {
  return fmt::format(
      "it {} when {}", finding.fails_under_it() ? "fails" : "passes",
      join(scarcity_words(finding.conditions, &ConditionField::as_a_clause), " and "));
}

std::string factors_text(const Test& test, const FactorReport& report, const Style& style) {
  std::string text;
  for (const FactorFinding& finding : report.findings) {
    text += fmt::format("{} {}: {}\n", style.paint(Tone::bad, "CAUSE"), finding.factor,
                        factor_sentence(finding));
    const std::string other =
        finding.reference == Conditions{}
            ? "as it is"
            : "with " + join(scarcity_words(finding.reference, &ConditionField::in_short), ", ");
    text += detail_line(fmt::format("failed in {} then, in {} {} (p = {:.2g})",
                                    share_of(finding.with), share_of(finding.without), other,
                                    fisher_differs(finding.with, finding.without)));
    if (!finding.signature.empty()) text += detail_line(one_line(headline(finding.failure)));
  }
  if (report.findings.empty())
    text += fmt::format("{} that a factor changes the outcome of {}\n",
                        style.paint(Tone::good, "no sign"), printable(test.id.name));
  text += fmt::format("\n{} of surroundings in {}\n", counted(report.levels, "change"),
                      counted(report.runs, "run"));
  for (const auto& [factor, why] : report.not_tried)
    text += fmt::format("not tried: {}: {}\n", factor, printable(why));
  text += notes_as_lines(report.notes);
  if (!report.is_complete)
    text += fmt::format("{}: the time ended before the search did\n",
                        style.paint(Tone::doubtful, "note"));
  return text;
}

std::string factors_json(const Test& test, const FactorReport& report) {
  DependenceJson json = {{"format", 1},
                         {"test", printable(to_string(test.id))},
                         {"levels", report.levels},
                         {"runs", report.runs},
                         {"is_complete", report.is_complete},
                         {"findings", DependenceJson::array()},
                         {"not_tried", DependenceJson::array()},
                         {"notes", printable_all(report.notes)}};
  for (const FactorFinding& finding : report.findings)
    json["findings"].push_back({{"factor", finding.factor},
                                {"sentence", factor_sentence(finding)},
                                {"conditions", json_of<DependenceJson>(finding.conditions)},
                                {"compared_with", json_of<DependenceJson>(finding.reference)},
                                {"with", json_of_count(finding.with)},
                                {"without", json_of_count(finding.without)},
                                {"p", fisher_differs(finding.with, finding.without)},
                                {"signature", finding.signature},
                                {"failure", printable(headline(finding.failure))}});
  for (const auto& [factor, why] : report.not_tried)
    json["not_tried"].push_back({{"factor", factor}, {"why", printable(why)}});
  return json_text(json, 1) + "\n";
}

std::string plain_cause(const Repro& repro) {
  const std::string name = printable(repro.test.name);
  if (repro.order && !repro.order->before.empty())
    return fmt::format("{} fails because {} ran before it in the same {}; alone it passes", name,
                       join(printable_all(repro.order->before), " and "),
                       repro.framework == Framework::ctest ? "folder" : "process");
  if (repro.order)
    return fmt::format("{} fails alone: it relies on what {} {} behind", name,
                       join(printable_all(repro.order->state_setters), " or "),
                       repro.order->state_setters.size() == 1 ? "leaves" : "leave");
  const std::string words =
      join(scarcity_words(repro.conditions, &ConditionField::as_a_clause), " and ");
  return fmt::format("{} {} when {}: it depends on the {}", name,
                     repro.passes_under_plan ? "passes only" : "fails", words, repro.factor);
}

std::string plain_advice(const Repro& repro) {
  if (!repro.order) return "set what it depends on in the test itself, or do not compare with it";
  if (repro.order->before.empty())
    return "set up in the test, or in its fixture, what it relies on";
  if (repro.order->cleaners.empty())
    return "reset the state that they share, in the fixture of both or at the end of the first";
  const RecordedCleaner& cleaner = repro.order->cleaners.front();
  return fmt::format("reset the state that they share as {} does ({}:{})", printable(cleaner.name),
                     printable(cleaner.file), cleaner.first_line);
}

std::string plain_cause_text(const Repro& repro) {
  std::string text =
      fmt::format("{}\n{} of {} runs failed so, {} of {} otherwise\nwhat to do: {}\n",
                  plain_cause(repro), repro.with_plan.hits, repro.with_plan.runs,
                  repro.without_plan.hits, repro.without_plan.runs, plain_advice(repro));
  if (repro.order && !repro.order->cleaners.empty())
    for (const std::string& line : repro.order->cleaners.front().body)
      text += "    " + printable(line) + "\n";
  return text;
}

std::string plain_cause_json(const Repro& repro) {
  DependenceJson json{{"format", 1},
                      {"test", printable(to_string(repro.test))},
                      {"cause", plain_cause(repro)},
                      {"advice", plain_advice(repro)}};
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
