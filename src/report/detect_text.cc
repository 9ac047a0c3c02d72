#include "report/detect_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/detect_words.h"
#include "report/search_text.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using DetectAnswer = DetectedTest::Answer;
using DetectJson = nlohmann::ordered_json;

constexpr size_t most_without_sign = 20;  // shown; the JSON has all

double seconds_in(Duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string found_heading(const Style& style, Tone tone, const std::string& text) {
  return style.paint(tone, text) + "\n";
}

std::string flaky_table(const DetectReport& report) {
  Table table({"TEST", "PLAIN RUNS", "SLACK", "FAILURE", "CAUSE"});
  for (const DetectedTest& test : report.tests)
    if (test.answer == DetectAnswer::seen_flaky)
      table.add({to_string(test.id), plain_words(test), slack_cell(test), test.failure,
                 cause_words(test)});
  return table.text();
}

std::string perturbed_table(const DetectReport& report) {
  Table table({"SLACK", "TEST", "FAILS WHEN", "PLAIN RUNS", "REPRO"});
  for (const DetectedTest& test : report.tests)
    if (test.answer == DetectAnswer::fails_perturbed)
      table.add({slack_cell(test), to_string(test.id), perturbed_words(test), plain_words(test),
                 test.repro_file});
  return table.text();
}

std::string no_sign_table(const DetectReport& report) {
  Table table({"RATE BELOW", "TEST", "PLAIN RUNS", "LOOKED FOR LATENESS"});
  size_t shown = 0;
  for (const DetectedTest& test : report.tests)
    if (test.answer == DetectAnswer::no_sign && ++shown <= most_without_sign)
      table.add({percent_at_most(upper_bound_zero_failures(test.plain.passes)), to_string(test.id),
                 plain_words(test), searched_words(test)});
  std::string text = table.text();
  if (shown > most_without_sign)
    text += fmt::format("  ... and {} more; --json has all\n", shown - most_without_sign);
  return text;
}

std::string reasons_table(const DetectReport& report, DetectAnswer answer) {
  Table table({"TEST", "WHY"});
  for (const DetectedTest& test : report.tests)
    if (test.answer == answer)
      table.add({to_string(test.id), answer == DetectAnswer::always_fails
                                         ? plain_words(test) + ": " + test.failure
                                         : test.why});
  return table.text();
}

DetectJson detected_json(const DetectedTest& test) {
  DetectJson json{{"target", test.id.target},
                  {"name", test.id.name},
                  {"answer", std::string(to_string(test.answer))}};
  json["plain"] = {{"passes", test.plain.passes},
                   {"failures", test.plain.failures},
                   {"skips", test.plain.skips}};
  json["mean_seconds"] = seconds_in(test.mean);
  if (test.answer == DetectAnswer::no_sign) {
    json["rate_below"] = upper_bound_zero_failures(test.plain.passes);
    json["confidence"] = 0.95;
  }
  json["chance_flaky"] = test.chance;
  json["threads"] = test.threads;
  json["waits"] = test.waits;
  json["hints"] = test.hints;
  json["searched"] = test.was_searched;
  json["factors_tried"] = test.factors_tried;
  json["trials"] = test.trials;
  if (!test.failure.empty()) json["failure"] = test.failure;
  if (!test.signature.empty()) json["signature"] = test.signature;
  if (!test.why.empty()) json["why"] = test.why;
  if (!test.perturbed) return json;
  DetectJson found{{"fails_when", perturbed_words(test)}, {"margin", test.is_margin()}};
  found["kind"] = test.perturbed->order             ? "order"
                  : !test.perturbed->factor.empty() ? "factor"
                                                    : "lateness";
  if (!test.perturbed->factor.empty()) found["factor"] = test.perturbed->factor;
  if (const auto slack = slack_of(*test.perturbed))
    found["slack_ms"] = std::chrono::duration<double, std::milli>(*slack).count();
  found["with_plan"] = {{"failures", test.perturbed->with_plan.hits},
                        {"runs", test.perturbed->with_plan.runs}};
  found["without_plan"] = {{"failures", test.perturbed->without_plan.hits},
                           {"runs", test.perturbed->without_plan.runs}};
  found["failure"] = headline(test.perturbed->failure);
  found["signature"] = test.perturbed->signature;
  if (!test.repro_file.empty()) found["repro"] = test.repro_file;
  json["perturbed"] = std::move(found);
  return json;
}

}  // namespace

void DetectProgress::on(const Event& event) {
  if (const auto* step = std::get_if<SearchStep>(&event); step && step->strategy == "detect") {
    const bool is_found =
        step->text.starts_with("seen flaky") || step->text.starts_with("fails when");
    found_ += is_found;
    if (!is_found) now_ = step->text;
    print(status_line(style_, is_found ? Tone::bad : Tone::plain, is_found ? "FOUND" : "DETECT", "",
                      one_line(step->text)));
  }
  if (const auto* note = std::get_if<Note>(&event))
    print(status_line(style_, Tone::doubtful, "NOTE", "", one_line(note->text)));
  runs_ += std::holds_alternative<RunEnded>(event);
  trials_ += std::holds_alternative<TrialEnded>(event);
  if (std::holds_alternative<RunEnded>(event) || std::holds_alternative<TrialEnded>(event)) count();
}

void DetectProgress::print(const std::string& line) {
  if (is_counting_) sink_.write("\r\x1b[K");
  is_counting_ = false;
  if (!line.empty()) sink_.write(line);
}

void DetectProgress::count() {
  if (!live_) return;
  sink_.write("\r\x1b[K" + cut_to_columns(fmt::format("{} found so far; {}, {}; {}", found_,
                                                      counted(runs_, "plain run"),
                                                      counted(trials_, "trial"), now_),
                                          79));
  is_counting_ = true;
}

std::string detect_text(const DetectReport& report, const Style& style) {
  std::string text = "\n";
  if (report.count(DetectAnswer::seen_flaky) > 0)
    text +=
        found_heading(style, Tone::bad, "Seen flaky in plain runs") + flaky_table(report) + "\n";
  if (report.count(DetectAnswer::fails_perturbed) > 0)
    text += found_heading(style, Tone::doubtful,
                          "Fail when late or in another order; plain runs end alike") +
            perturbed_table(report) + "\n";
  if (report.count(DetectAnswer::always_fails) > 0)
    text += found_heading(style, Tone::bad, "Failed in every run") +
            reasons_table(report, DetectAnswer::always_fails) + "\n";
  if (report.count(DetectAnswer::no_sign) > 0)
    text += found_heading(style, Tone::good, "No sign of flakiness (rates at 95 % confidence)") +
            no_sign_table(report) + "\n";
  if (report.count(DetectAnswer::not_run) > 0)
    text += found_heading(style, Tone::doubtful, "Not run") +
            reasons_table(report, DetectAnswer::not_run) + "\n";
  for (const std::string& line : summary_of(report)) text += one_line(line) + "\n";
  return text;
}

std::string detect_json(const DetectReport& report) {
  DetectJson json{{"format", "unflake-detect"}, {"version", 1}, {"target", report.target}};
  if (!report.selection.empty()) json["selection"] = report.selection;
  json["commit"] = report.commit;
  json["budget_seconds"] = seconds_in(report.budget);
  json["elapsed_seconds"] = seconds_in(report.elapsed);
  json["plain_runs"] = report.plain_runs;
  json["plain_seconds"] = seconds_in(report.in_plain_runs);
  json["trials"] = report.trials;
  json["trial_seconds"] = seconds_in(report.in_trials);
  json["stopped"] = report.stopped;
  json["complete"] = !report.enough.empty();
  DetectJson counts;
  for (const DetectAnswer answer :
       {DetectAnswer::seen_flaky, DetectAnswer::fails_perturbed, DetectAnswer::always_fails,
        DetectAnswer::no_sign, DetectAnswer::skipped, DetectAnswer::not_run})
    counts[std::string(to_string(answer))] = report.count(answer);
  json["counts"] = std::move(counts);
  json["tests"] = DetectJson::array();
  for (const DetectedTest& test : report.tests) json["tests"].push_back(detected_json(test));
  json["notes"] = report.notes;
  return json_text(json, 2) + "\n";
}

std::string curve_text(const RerunCurve& curve) {
  std::string text =
      fmt::format("{} of {} tests are known to be flaky ({}); one run of each takes {:.1f} s\n\n",
                  curve.flaky, curve.tests, one_line(curve.source), curve.suite_seconds);
  Table table({"TIME", "RERUN EVERYTHING", "DETECTIONS", "SCHEDULED", "LEAST..MOST"});
  for (const RerunCurve::Point& point : curve.points)
    table.add({time_words(point.seconds), counted(static_cast<long long>(point.runs), "time"),
               fmt::format("{:.1f}", point.everything), fmt::format("{:.1f}", point.scheduled),
               fmt::format("{:.0f}..{:.0f}", point.least, point.most)});
  text += table.text() + "\n";
  for (const std::string& note : curve.notes) text += one_line(note) + "\n";
  return text;
}

std::string curve_json(const RerunCurve& curve) {
  DetectJson json{{"format", "unflake-plan"}, {"version", 1},         {"source", curve.source},
                  {"tests", curve.tests},     {"flaky", curve.flaky}, {"runs", curve.runs}};
  json["suite_seconds"] = curve.suite_seconds;
  json["simulations"] = curve.simulations;
  json["seed"] = curve.seed;
  json["points"] = DetectJson::array();
  for (const RerunCurve::Point& point : curve.points)
    json["points"].push_back({{"seconds", point.seconds},
                              {"runs", point.runs},
                              {"everything", point.everything},
                              {"scheduled", point.scheduled},
                              {"least", point.least},
                              {"most", point.most}});
  json["notes"] = curve.notes;
  return json_text(json, 2) + "\n";
}

}  // namespace unflake
