#include "report/detect_words.h"

#include <fmt/format.h>

#include "report/layout.h"
#include "report/search_text.h"
#include "stats/rates.h"
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
  const Count& with = test.perturbed->with_plan;
  const std::string came = fmt::format(" ({} of {} runs)", with.hits, with.runs);
  if (test.is_plain_cause()) return clause_of(*test.perturbed) + came;
  if (!slack) return "a thread is late; how much was not measured" + came;
  if (*slack > Duration::zero()) return "a thread is " + format_duration(*slack) + " late" + came;
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

}  // namespace unflake
