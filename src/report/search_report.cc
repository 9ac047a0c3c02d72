#include "report/search_report.h"

#include <fmt/format.h>

#include "report/findings.h"
#include "stats/intervals.h"
#include "util/text.h"

namespace unflake {
namespace {

using Purpose = TrialEnded::Purpose;

constexpr int reruns_per_line = 100;

std::string conditions_text(const Conditions& conditions) {
  std::vector<std::string> parts;
  if (conditions.one_core) parts.push_back("one core");
  if (conditions.cpu_share < 1)
    parts.push_back(fmt::format("{:.0f} % of the time", conditions.cpu_share * 100));
  if (conditions.competitors > 0)
    parts.push_back(counted(conditions.competitors, "busy neighbour"));
  return join(parts, ", ");
}

Duration longest_delay(const Plan& plan) {
  Duration longest{};
  for (const Intervention& intervention : plan.interventions)
    longest = std::max(longest, intervention.duration);
  return longest;
}

std::string trial_text(const TrialEnded& trial) {
  std::string text = trial.why;
  if (const Duration delay = longest_delay(trial.plan); delay > Duration::zero())
    text += ", by " + format_duration(delay);
  if (trial.conditions != Conditions{}) text += ": " + conditions_text(trial.conditions);
  if (!trial.fired) text += " (never got there)";
  if (trial.result.process.end == ProcessResult::End::not_started)
    return text + ": " + trial.result.process.error;
  if (trial.result.outcome.failed()) text += ": " + failure_headline(trial.result.outcome);
  return text;
}

std::string rate_text(const Count& count) {
  const Interval interval = exact_interval(count.hits, count.runs);
  return fmt::format("{} of {} ({:.0f} to {:.0f} %)", count.hits, count.runs, interval.low * 100,
                     interval.high * 100);
}

}  // namespace

void SearchReport::on(const Event& event) {
  std::visit([this](const auto& happened) { tell(happened); }, event);
}

void SearchReport::tell(const SearchStarted& search) {
  const std::string wanted =
      search.wanted.empty() ? "every failure that lateness can cause" : search.wanted;
  sink_.write(status_line(style_, Tone::plain, "Hunting", std::nullopt,
                          one_line(to_string(search.test->id)) + " for " + one_line(wanted) +
                              ", for at most " + format_duration(search.budget)));
}

void SearchReport::tell(const SearchStep& step) {
  const bool is_new = std::exchange(strategy_, step.strategy) != step.strategy;
  sink_.write(
      is_new ? status_line(style_, Tone::plain, step.strategy, std::nullopt, one_line(step.text))
             : detail_line(one_line(step.text)));
}

void SearchReport::tell(const TrialEnded& trial) {
  if (trial.purpose != Purpose::candidate) return;
  const bool is_rerun = trial.plan.interventions.empty() && trial.conditions == Conditions{};
  if (is_rerun && !trial.hit && ++reruns_ % reruns_per_line != 0) return;
  const Tone tone = trial.hit                       ? Tone::bad
                    : trial.result.outcome.failed() ? Tone::doubtful
                                                    : Tone::faint;
  const std::string status =
      fmt::format("{} {}", trial.number, trial.hit ? "HIT" : status_word(trial.result));
  sink_.write(status_line(style_, tone, status, trial.result.outcome.duration,
                          one_line(trial_text(trial))));
}

void SearchReport::tell(const FailureReproduced& reproduced) {
  sink_.write("\n" + repro_text(reproduced.repro, style_));
  if (!reproduced.file.empty())
    sink_.write(fmt::format("\n  again:  unflake replay {0}\n  why:    unflake explain {0}\n",
                            shell_quote(reproduced.file)));
}

void SearchReport::tell(const Note& note) {
  const Tone tone = note.level == Note::Level::info ? Tone::plain : Tone::doubtful;
  sink_.write(
      fmt::format("{}: {}\n", style_.paint(tone, to_string(note.level)), one_line(note.text)));
  if (!note.next.empty()) sink_.write(detail_line(one_line(note.next)));
}

std::string repro_text(const Repro& repro, const Style& style) {
  std::string text =
      status_line(style, Tone::bad, repro.passes_under_plan ? "Flipped" : "Reproduced",
                  std::nullopt, one_line(headline(repro.failure)));
  for (const Intervention& delay : repro.plan.interventions)
    text += detail_line("--delay " + shell_quote(to_string(delay, repro.plan.interventions)));
  if (repro.conditions != Conditions{}) text += detail_line(conditions_text(repro.conditions));
  text += detail_line(fmt::format("fails in {} runs with this, in {} without",
                                  rate_text(repro.with_plan), rate_text(repro.without_plan)));
  if (repro.passes_under_plan)
    text += detail_line("it fails by itself mostly; late like this, it passes");
  if (repro.slack)
    text += detail_line(
        fmt::format("slack: {} ({} is not enough, {} is)", format_duration(repro.slack->fails),
                    format_duration(repro.slack->passes), format_duration(repro.slack->fails)));
  text += detail_line(fmt::format("found by {} in {}, signature {}", repro.strategy,
                                  counted(repro.search_runs, "search run"), repro.signature));
  return text;
}

}  // namespace unflake
