#include "report/search_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layout.h"
#include "stats/rates.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_groups = 32;

std::string crash_word(const ProcessResult& process) {
  if (process.end != ProcessResult::End::signalled) return "CRASH";
  return "CRASH " + signal_name(process.code);
}

}  // namespace

const FailureGroup& TestLog::count(const Outcome& outcome) {
  FailureGroup& group = group_of(outcome);
  ++group.runs;
  return group;
}

FailureGroup& TestLog::group_of(const Outcome& outcome) {
  const auto known = std::find_if(groups_.begin(), groups_.end(), [&](const FailureGroup& group) {
    return group.signature == outcome.signature && group.kind == outcome.kind;
  });
  if (known != groups_.end()) return *known;
  if (groups_.size() < most_groups)
    groups_.push_back({outcome.signature, outcome.kind, failure_headline(outcome), 0});
  else if (groups_.size() == most_groups)
    groups_.push_back({"", OutcomeKind::fail, "other failures, each different", 0});
  return groups_.back();
}

std::string status_word(const ExperimentResult& result) {
  switch (result.outcome.kind) {
    case OutcomeKind::pass:
      return "PASS";
    case OutcomeKind::fail:
      return "FAIL";
    case OutcomeKind::crash:
      return crash_word(result.process);
    case OutcomeKind::timeout:
      return "TIMEOUT";
    case OutcomeKind::skipped:
      return "SKIP";
  }
  return "?";
}

std::string failure_headline(const Outcome& outcome) {
  if (outcome.failures.empty()) return "no failure message";
  const std::string first = one_line(headline(outcome.failures.front()));
  const size_t more = outcome.failures.size() - 1;
  if (more == 0) return first;
  return fmt::format("{} (and {})", first, counted(static_cast<long long>(more), "more failure"));
}

std::string group_lines(const TestLog& log) {
  std::vector<FailureGroup> groups = log.groups();
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.runs > b.runs; });
  std::string lines;
  for (const FailureGroup& group : groups) {
    const std::string name = one_line(group.signature);
    const std::string suffix = name.empty() ? "" : fmt::format(" [{}]", name);
    const bool single = groups.size() == 1 && group.runs == 1;
    const std::string times = single ? "" : fmt::format("{} x ", group.runs);
    lines += detail_line(times + group.headline + suffix);
  }
  return lines;
}

namespace {

using Purpose = TrialEnded::Purpose;

constexpr int reruns_per_line = 100;

// Not every failure is what a search is after.
std::string_view doubt_of(const TrialEnded& trial, bool wants_any) {
  if (!trial.result.outcome.failed() || trial.hit || trial.wants_pass || !trial.fired) return "";
  return wants_any ? " (found already)" : " (another failure)";
}

std::string trial_text(const TrialEnded& trial, bool wants_any) {
  std::string text = trial.why;
  if (const Duration delay = longest_delay(trial.plan); delay > Duration::zero())
    text += ", by " + format_duration(delay);
  if (!trial.fired) text += " (never got there)";
  if (trial.result.process.end == ProcessResult::End::not_started)
    return text + ": " + trial.result.process.error;
  text += doubt_of(trial, wants_any);
  if (trial.hit && trial.wants_pass) text += " (passes now)";
  return text;
}

// Short enough for its column, whatever the number before it: the failure names the signal.
std::string_view word_for(const TrialEnded& trial) {
  if (trial.result.process.end == ProcessResult::End::not_started) return "REFUSED";
  switch (trial.result.outcome.kind) {
    case OutcomeKind::pass:
      return "PASS";
    case OutcomeKind::fail:
      return "FAIL";
    case OutcomeKind::crash:
      return "CRASH";
    case OutcomeKind::timeout:
      return "TIMEOUT";
    case OutcomeKind::skipped:
      return "SKIP";
  }
  return "?";
}

std::string_view counted_as(Purpose purpose) {
  switch (purpose) {
    case Purpose::profile:
      return "without delays";
    case Purpose::candidate:
      return "plain";
    case Purpose::confirm:
      return "again, with the delays";
    case Purpose::baseline:
      return "again, without delays";
    case Purpose::dose:
      return "with shorter delays";
    case Purpose::look:
      return "to look closer";
    case Purpose::setting:
      return "with other times";
    case Purpose::inject:
    case Purpose::replay:
      return "with the interventions";
    case Purpose::trace:
    case Purpose::explain:
      return "with its calls recorded";
    case Purpose::fixture:
      return "of a fixture";
  }
  return "";
}

// "reached: 3 places" is about "reached", and the word goes into the column of status words.
std::optional<std::string_view> topic_of(std::string_view text) {
  constexpr size_t longest_topic = 13;
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos || colon > longest_topic) return std::nullopt;
  return text.substr(0, colon);
}

std::string rate_text(const Count& count) {
  const Interval interval = count.interval();
  return fmt::format("{} of {} ({:.0f} to {:.0f} %)", count.hits, counted(count.runs, "run"),
                     interval.low * 100, interval.high * 100);
}

std::string_view heading_of(const Repro& repro) {
  if (repro.is_margin()) return "Margin";
  return repro.passes_under_plan ? "Flipped" : "Reproduced";
}

}  // namespace

void SearchReport::on(const Event& event) {
  std::visit([this](const auto& happened) { tell(happened); }, event);
}

void SearchReport::print(const std::string& lines) {
  const bool was_counting = std::exchange(is_counting_, false);
  if (was_counting || !lines.empty()) sink_.write((was_counting ? "\r\x1b[K" : "") + lines);
}

void SearchReport::count(const TrialEnded& trial) {
  if (!live_) return;
  is_counting_ = true;
  sink_.write("\r\x1b[K" +
              style_.paint(Tone::faint, fmt::format("{:>13} run {} {}", "...", trial.number,
                                                    counted_as(trial.purpose))));
}

void SearchReport::tell(const SearchStarted& search) {
  wants_any_ = search.wanted.empty() && search.signature.empty();
  const std::string wanted =
      search.wanted.empty() ? "every failure that timing can cause" : search.wanted;
  print(status_line(style_, Tone::plain, "Hunting", std::nullopt,
                    one_line(to_string(search.test->id))));
  print(detail_line("for " + one_line(wanted)));
  print(detail_line("at most " + format_duration(search.budget)));
}

void SearchReport::tell_profile() {
  const int runs = std::exchange(profile_runs_, 0);
  const int failures = std::exchange(profile_failures_, 0);
  if (runs > 0) print(detail_line(fmt::format("{} of {} failed", failures, counted(runs, "run"))));
}

void SearchReport::tell(const SearchStep& step) {
  tell_profile();
  const bool is_new = std::exchange(strategy_, step.strategy) != step.strategy;
  print(is_new ? status_line(style_, Tone::plain, step.strategy, std::nullopt, one_line(step.text))
               : detail_line(one_line(step.text)));
}

void SearchReport::tell(const TrialEnded& trial) {
  if (trial.purpose == Purpose::fixture) return;
  const bool was_run = trial.result.process.end != ProcessResult::End::not_started;
  if (trial.purpose == Purpose::profile && !was_run) {
    // Only a watched line can be left out; anything else is the end of the search, and an error.
    if (!trial.plan.interventions.empty()) print(detail_line(one_line(trial.result.process.error)));
    return;
  }
  if (trial.purpose == Purpose::profile) {
    ++profile_runs_;
    profile_failures_ += trial.result.outcome.failed();
  }
  const bool is_plain = trial.plan.interventions.empty() && trial.conditions == Conditions{};
  if (trial.plan.schedule && !trial.hit) return count(trial);
  if (trial.purpose != Purpose::candidate) return count(trial);
  if (is_plain && !trial.hit && ++reruns_ % reruns_per_line != 0) return count(trial);
  const Tone tone = trial.hit                       ? Tone::bad
                    : trial.result.outcome.failed() ? Tone::doubtful
                                                    : Tone::faint;
  const std::string status = fmt::format("{} {}", trial.number, word_for(trial));
  print(status_line(style_, tone, status, trial.result.outcome.duration,
                    one_line(trial_text(trial, wants_any_))) +
        failure_text(trial.result.outcome));
}

// Most experiments that fail do so like the one before.
std::string SearchReport::failure_text(const Outcome& outcome) {
  if (!outcome.failed() || outcome.failures.empty()) return "";
  const std::string failure = failure_headline(outcome);
  return std::exchange(failure_, failure) == failure ? "" : detail_line(failure);
}

void SearchReport::tell(const FailureReproduced& reproduced) {
  print("\n" + repro_text(reproduced.repro, style_));
  if (!reproduced.file.empty())
    print(fmt::format("\n  again:  unflake replay {0}\n  why:    unflake explain {0}\n",
                      shell_quote(reproduced.file)));
}

void SearchReport::tell(const Note& note) {
  tell_profile();
  const std::string text = one_line(note.text);
  const auto topic = topic_of(text);
  if (note.level == Note::Level::info && topic)
    print(status_line(style_, Tone::plain, *topic, std::nullopt, text.substr(topic->size() + 2)));
  else
    print(fmt::format("{}: {}\n",
                      style_.paint(note.level == Note::Level::info ? Tone::plain : Tone::doubtful,
                                   to_string(note.level)),
                      text));
  if (!note.next.empty()) print(detail_line(one_line(note.next)));
}

namespace {

constexpr size_t longest_hold = 200;  // instructions of templates have names that nobody reads

// As `unflake inject` takes them. What a hold waits for is in its text.
std::string plan_lines(const Repro& repro) {
  std::string text;
  int left_out = 0;
  for (const Intervention& what : repro.plan.interventions) {
    if (what.action == Intervention::Action::watch) continue;
    const bool is_hold = what.action == Intervention::Action::hold;
    if (is_hold && text.empty()) text += detail_line(one_line(repro.reason));
    const std::string words = to_string(what, repro.plan.interventions);
    const bool is_readable = !is_hold || words.size() <= longest_hold;
    left_out += !is_readable;
    if (is_readable) text += detail_line((is_hold ? "--hold " : "--delay ") + shell_quote(words));
  }
  if (left_out > 0)
    text += detail_line(fmt::format("by {} at instructions with long names, which the file has",
                                    counted(left_out, "hold")));
  return text;
}

std::string control_lines(const Repro& repro) {
  const size_t exchanges = repro.plan.schedule->decisions.size();
  std::string text = detail_line(one_line(repro.reason));
  text += detail_line(
      exchanges == 0
          ? std::string("under control, with one thread at a time and nobody interrupted")
          : fmt::format("under control, with one thread at a time, exchanged {}",
                        exchanges == 1 ? "once" : fmt::format("{} times", exchanges)));
  text += detail_line(repro.not_repeatable.empty()
                          ? "every run takes the same decisions"
                          : "runs may differ: not everything is decided, because of " +
                                one_line(repro.not_repeatable));
  if (!repro.was_seen) text += detail_line("only under control: no run on free cores has shown it");
  return text;
}

}  // namespace

std::string repro_text(const Repro& repro, const Style& style) {
  std::string text =
      status_line(style, repro.is_margin() ? Tone::doubtful : Tone::bad, heading_of(repro),
                  std::nullopt, one_line(headline(repro.failure)));
  if (repro.is_margin()) text += detail_line(margin_words(repro));
  text += plan_lines(repro);
  if (repro.is_under_control()) text += control_lines(repro);
  if (repro.conditions != Conditions{})
    text += detail_line(join(scarcity_words(repro.conditions, &ConditionField::in_short), ", "));
  text += detail_line(fmt::format("fails in {} with this, in {} without",
                                  rate_text(repro.with_plan), rate_text(repro.without_plan)));
  if (repro.under_control)
    text += detail_line(
        fmt::format("free cores leave the rest to chance; `replay` runs it under control, where it "
                    "failed in {} runs",
                    fmt::format("{} of {}", repro.under_control->hits, repro.under_control->runs)));
  if (repro.passes_under_plan)
    text += detail_line("it fails by itself mostly; late like this, it passes");
  if (repro.slack && !repro.is_margin())
    text +=
        detail_line((repro.passes_under_plan ? "passes from " : "slack: ") + slack_words(repro));
  if (const std::string verdict = plausibility_words(repro); !verdict.empty())
    text += detail_line((repro.plausibility ? "" : "verdict: ") + verdict);
  text += detail_line(fmt::format("found by {} in {}, signature {}", repro.strategy,
                                  counted(repro.search_runs, "search run"), repro.signature));
  return text;
}

namespace {

// The longest lateness that most runs survived, of those with too few runs to be sure.
const Dose* longest_harmless(const Repro& repro) {
  const Dose* longest = nullptr;
  for (const Dose& dose : repro.doses) {
    const bool is_failing = 2 * dose.failures.hits > dose.failures.runs;
    const bool is_between = dose.delay > repro.slack->passes && dose.delay < repro.slack->fails &&
                            dose.failures.runs > 0;
    if (!is_between || is_failing != repro.passes_under_plan) continue;
    if (longest == nullptr || dose.delay > longest->delay) longest = &dose;
  }
  return longest;
}

std::string known_of_less(const Repro& repro) {
  const Dose* dose = longest_harmless(repro);
  if (dose == nullptr) return "nothing shorter was tried";
  return fmt::format("with {} {} of {} failed, too few to be sure", format_duration(dose->delay),
                     dose->failures.hits, counted(dose->failures.runs, "run"));
}

std::string sentence_of(const Repro& repro) {
  const bool is_scarce_only = repro.plan.interventions.empty();
  switch (*repro.plausibility) {
    case Plausibility::flaw:
      return is_scarce_only ? "a flaw: a busy machine is as scarce"
                            : "a flaw: a busy machine is that late";
    case Plausibility::risk:
      return is_scarce_only ? "a risk: a badly overloaded machine is as scarce"
                            : "a risk: a badly overloaded machine is that late";
    case Plausibility::margin:
      break;
  }
  return repro.was_seen ? "only a machine that stands still is that late, but the failure was seen"
                        : "a margin, no flaw: only a machine that stands still is that late";
}

bool is_made_late(const Repro& repro) {
  return !repro.passes_under_plan && longest_delay(repro.plan) > Duration::zero();
}

std::string why_not_judged(const Repro& repro) {
  constexpr const char* question = "a flaw, a risk or a margin";
  if (!repro.slack)
    return fmt::format("{}, because how little lateness is enough was not measured", question);
  return fmt::format("{}, because no lateness was found that does no harm", question);
}

}  // namespace

std::string slack_words(const Repro& repro) {
  if (!repro.slack) return "";
  const std::string enough = format_duration(repro.slack->fails);
  if (repro.slack->passes == Duration::zero())
    return fmt::format("at most {}; {}", enough, known_of_less(repro));
  return fmt::format("{} ({} is not enough)", enough, format_duration(repro.slack->passes));
}

std::string margin_words(const Repro& repro) {
  if (!repro.slack) return "fails under the plan; how much less is enough was not measured";
  const std::string enough = format_duration(repro.slack->fails);
  if (repro.slack->passes == Duration::zero())
    return fmt::format("fails when {} late; {}", enough, known_of_less(repro));
  return fmt::format("holds until {} late, fails when {} late",
                     format_duration(repro.slack->passes), enough);
}

std::string plausibility_words(const Repro& repro) {
  if (!repro.plausibility) return is_made_late(repro) ? "not known: " + why_not_judged(repro) : "";
  std::string text = sentence_of(repro);
  if (repro.machine_lateness)
    text += fmt::format("; this one was late by up to {}, and by {} when it was made scarce",
                        format_duration(repro.machine_lateness->plain),
                        format_duration(repro.machine_lateness->scarce));
  return text;
}

}  // namespace unflake
