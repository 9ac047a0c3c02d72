#include "report/detect_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layout.h"
#include "report/search_text.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {

using DetectAnswer = DetectedTest::Answer;

std::string plain_words(const DetectedTest& test) {
  const int runs = test.plain.passes + test.plain.failures;
  if (runs == 0) return "none";
  if (test.plain.failures == 0) return fmt::format("none of {} failed", runs);
  const Interval rate = exact_interval(test.plain.failures, runs);
  return fmt::format("{} of {} failed ({})", test.plain.failures, runs, interval_text(rate));
}

std::string slack_cell(const DetectedTest& test) {
  if (!test.perturbed || test.is_plain_cause()) return "-";
  const auto slack = slack_of(*test.perturbed);
  if (!slack) return "not measured";
  return *slack > Duration::zero() ? format_duration(*slack) : "none: an order";
}

namespace {

// Behind "fails when".
std::string clause_of(const Repro& repro) {
  if (repro.order && !repro.order->before.empty())
    return join(repro.order->before, " and ") + " ran before it";
  if (repro.order) return join(repro.order->state_setters, " or ") + " did not run before it";
  const std::string words =
      join(scarcity_words(repro.conditions, &ConditionField::as_a_clause), " and ");
  return repro.passes_under_plan ? "not so that " + words : words;
}

}  // namespace

std::string cause_words(const DetectedTest& test) {
  if (test.perturbed) return "fails when " + perturbed_words(test);
  std::string looked = test.was_searched ? "no lateness" : "";
  if (test.factors_tried > 0)
    looked += fmt::format("{}none of {} changes of surroundings", looked.empty() ? "" : ", ",
                          test.factors_tried);
  const std::string hints = test.hints.empty() ? "" : "; maybe " + join(test.hints, ", ");
  return "not known" + (looked.empty() ? "" : ": " + looked) + hints;
}

std::string perturbed_words(const DetectedTest& test) {
  if (!test.perturbed) return "";
  const auto slack = slack_of(*test.perturbed);
  const bool is_inverted = test.perturbed->passes_under_plan && !test.is_plain_cause();
  const Count& with = is_inverted ? test.perturbed->without_plan : test.perturbed->with_plan;
  const std::string came = fmt::format(" ({} of {} runs)", with.hits, with.runs);
  if (test.is_plain_cause()) return clause_of(*test.perturbed) + came;
  const std::string who = is_inverted ? "no thread is " : "a thread is ";
  if (!slack) return who + "late; how much was not measured" + came;
  if (*slack > Duration::zero()) return who + format_duration(*slack) + " late" + came;
  return "its threads go in another order" + came;
}

std::string searched_words(const DetectedTest& test) {
  if (test.is_margin()) return "holds unless " + perturbed_words(test) + ": a margin";
  if (test.was_searched) return fmt::format("yes, {}", counted(test.trials, "trial"));
  if (!test.why.empty()) return "no: " + test.why;
  if (test.trials > 0 && test.threads <= 1 && test.waits.empty()) return "no threads, no waits";
  return "no";
}

std::string finding_words(const DetectedTest& test) {
  std::string words;
  if (test.answer == DetectAnswer::seen_flaky) words = "seen flaky: " + plain_words(test);
  if (test.perturbed && !test.is_margin())
    words += (words.empty() ? "" : "; ") + ("fails when " + perturbed_words(test));
  return words;
}

std::vector<std::string> summary_of(const DetectReport& report) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{}: {} seen flaky, {} fail when perturbed, {} always fail, {} without a sign, "
      "{} skipped, {} "
      "not run",
      counted(static_cast<long long>(report.tests.size()), "test"),
      report.count(DetectAnswer::seen_flaky), report.count(DetectAnswer::fails_perturbed),
      report.count(DetectAnswer::always_fails), report.count(DetectAnswer::no_sign),
      report.count(DetectAnswer::skipped), report.count(DetectAnswer::not_run)));
  lines.push_back(fmt::format("{} ({}) and {} ({}) in {} of {}",
                              counted(report.plain_runs, "plain run"),
                              format_duration(report.in_plain_runs),
                              counted(report.trials, "trial"), format_duration(report.in_trials),
                              format_duration(report.elapsed), format_duration(report.budget)));
  if (!report.selection.empty()) lines.push_back(report.selection);
  if (const size_t lacked = report.lacked_time(); lacked > 0 && !report.stopped)
    lines.push_back(fmt::format(
        "no time was left to look for lateness in {}: a longer --budget, or fewer tests, "
        "tell more",
        counted(static_cast<long long>(lacked), "test")));
  if (report.stopped) lines.push_back("stopped before its time: what was found until then is told");
  if (!report.enough.empty()) lines.push_back("done before its time: " + report.enough);
  for (const std::string& note : report.notes) lines.push_back(note);
  if (report.count(DetectAnswer::fails_perturbed) > 0)
    lines.push_back(
        "next: `unflake explain` with a repro says why, `unflake replay` makes it happen");
  return lines;
}

std::string time_words(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  return fmt::format("{:.4g} h", seconds / 3600);
}

namespace {

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
  if (test.found_after) json["found_after_seconds"] = seconds_in(*test.found_after);
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
  sink_.write("\r\x1b[K" +
              cut_to_columns(
                  fmt::format("{}{} found so far; {}, {}; {}", time_ ? "[" + time_() + "] " : "",
                              found_, counted(runs_, "plain run"), counted(trials_, "trial"), now_),
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

namespace {

using BisectJson = nlohmann::ordered_json;
using BisectAnswer = CommitBisection::Answer;

std::string_view word_of(BisectAnswer answer) {
  switch (answer) {
    case BisectAnswer::found:
      return "found";
    case BisectAnswer::several:
      return "several";
    case BisectAnswer::fails_before:
      return "fails_before";
    case BisectAnswer::never_fails:
      return "never_fails";
    case BisectAnswer::unfinished:
      return "unfinished";
  }
  return "?";
}

std::string name_of(const BisectReport::Commit& commit) {
  return short_id(commit) + (commit.subject.empty() ? "" : " " + one_line(commit.subject));
}

// The last look at a commit that says what its state rests on.
const CommitLook* look_at(const BisectReport& report, size_t commit) {
  const CommitLook* last = nullptr;
  for (const auto& step : report.bisection.steps)
    if (step.commit == commit) last = &step.look;
  return last;
}

std::string evidence(const BisectReport& report, size_t commit) {
  const CommitLook* look = look_at(report, commit);
  return detail_line(fmt::format("{} {}: {}", short_id(report.commits[commit]),
                                 look ? to_string(look->answer) : "was not looked at",
                                 look ? printable(look->how) : "taken for granted"));
}

std::string candidates(const BisectReport& report) {
  std::string text;
  for (size_t i = report.bisection.last_holding + 1; i <= report.bisection.first_failing; ++i)
    text += detail_line(name_of(report.commits[i]));
  return text;
}

std::string answer_lines(const BisectReport& report, const Style& style) {
  const CommitBisection& found = report.bisection;
  const std::string test = printable(to_string(report.test));
  const auto line = [&](Tone tone, const char* word, const std::string& text) {
    return style.paint(tone, word) + " " + text + "\n";
  };
  switch (found.answer) {
    case BisectAnswer::found:
      return line(Tone::bad, "INTRODUCED by", name_of(report.commits[found.first_failing])) +
             evidence(report, found.first_failing) + evidence(report, found.last_holding);
    case BisectAnswer::several:
      return line(Tone::doubtful, "INTRODUCED by one of these",
                  "of which all but the last cannot be told:") +
             candidates(report) + evidence(report, found.first_failing) +
             evidence(report, found.last_holding);
    case BisectAnswer::fails_before:
      return line(
                 Tone::doubtful, "OLDER",
                 fmt::format("it fails at {}, too: name an older commit", printable(report.from))) +
             evidence(report, 0);
    case BisectAnswer::never_fails:
      return line(Tone::good, "NO SIGN",
                  fmt::format("of flakiness at {}, so that there is nothing to look for",
                              printable(report.to))) +
             evidence(report, report.commits.size() - 1);
    case BisectAnswer::unfinished:
      return line(
          Tone::doubtful, "NOT FINISHED",
          fmt::format("{} commits are left, up to {}", found.first_failing - found.last_holding,
                      name_of(report.commits[found.first_failing])));
  }
  return "";
}

}  // namespace

std::string bisect_text(const BisectReport& report, const Style& style) {
  std::string text = printable(to_string(report.test)) + "\n";
  if (!report.headline.empty())
    text += detail_line(fmt::format("{} [{}]", one_line(report.headline), report.signature));
  if (!report.how.empty()) text += detail_line(one_line(report.how));
  text += answer_lines(report, style);
  text += fmt::format("\n{} in {} of {} commits; {} in {}\n", counted(report.runs, "run"),
                      counted(report.builds, "build"), report.commits.size() - 1,
                      "builds took " + format_duration(report.in_builds),
                      format_duration(report.elapsed));
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

std::string bisect_json(const BisectReport& report) {
  BisectJson json = {{"format", "unflake-bisect"},
                     {"version", 1},
                     {"target", printable(report.test.target)},
                     {"name", printable(report.test.name)},
                     {"good", printable(report.from)},
                     {"bad", printable(report.to)},
                     {"answer", word_of(report.bisection.answer)}};
  if (const auto* first = report.first())
    json["commit"] = {{"id", printable(first->id)}, {"subject", printable(first->subject)}};
  json["candidates"] = BisectJson::array();
  if (report.bisection.answer == BisectAnswer::several ||
      report.bisection.answer == BisectAnswer::unfinished)
    for (size_t i = report.bisection.last_holding + 1; i <= report.bisection.first_failing; ++i)
      json["candidates"].push_back(printable(report.commits[i].id));
  json["failure"] = printable(report.headline);
  json["signature"] = report.signature;
  json["fails_when"] = printable(report.how);
  json["commits"] = report.commits.size() - 1;
  json["builds"] = report.builds;
  json["runs"] = report.runs;
  json["build_seconds"] = std::chrono::duration<double>(report.in_builds).count();
  json["elapsed_seconds"] = std::chrono::duration<double>(report.elapsed).count();
  json["steps"] = BisectJson::array();
  for (const auto& step : report.bisection.steps)
    json["steps"].push_back({{"commit", printable(report.commits[step.commit].id)},
                             {"answer", to_string(step.look.answer)},
                             {"thorough", step.is_thorough},
                             {"failures", step.look.failures.hits},
                             {"of_runs", step.look.failures.runs},
                             {"runs", step.look.runs},
                             {"how", printable(step.look.how)}});
  json["notes"] = BisectJson::array();
  for (const std::string& note : report.notes) json["notes"].push_back(printable(note));
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
