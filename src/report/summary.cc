#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "stats/rates.h"

namespace unflake {
namespace {

constexpr size_t most_notes = 20;
constexpr size_t most_reasons = 20;

std::string_view word_of(Note::Level level) {
  return level == Note::Level::info ? "note" : to_string(level);
}

Tone tone_of(Note::Level level) {
  if (level == Note::Level::info) return Tone::faint;
  return level == Note::Level::warning ? Tone::doubtful : Tone::bad;
}

std::string skip_line(const TestEnded& test, const TestLog& log, const Style& style) {
  const std::string reason = one_line(test.reason.empty() ? log.last_reason : test.reason);
  const std::string why = reason.empty() ? "" : fmt::format(" ({})", reason);
  return status_line(style, Tone::faint, "SKIP", std::nullopt, label_of(*test.test) + why);
}

// The lines above the gate's words already say how often a test failed and how.
bool says_more(const GateDecision& gate) {
  return gate.sanitizer || (gate.kind != GateKind::flaky_new && gate.kind != GateKind::failed);
}

}  // namespace

std::string note_lines(const Note& note, const Style& style) {
  std::string lines = status_line(style, tone_of(note.level), word_of(note.level), std::nullopt,
                                  one_line(note.text));
  if (!note.next.empty()) lines += detail_line("next: " + one_line(note.next));
  return lines;
}

void Summary::begin(const SessionStarted& session) {
  repeated_ = session.repeat != 1 || session.duration;
  repeated_tests_ = session.repeated;
  why_repeated_ = session.why_repeated;
  retries_ = session.retries;
  seed_ = session.seed;
}

void Summary::remember(const Note& note) {
  if (note.level != Note::Level::info && notes_.size() < most_notes) notes_.push_back(note);
}

std::string Summary::end(const TestEnded& test, TestLog log) {
  if (test.verdict == Verdict::not_run) {
    const bool known = not_run_.size() < most_reasons || not_run_.contains(test.reason);
    ++not_run_[known ? test.reason : "other reasons"];
    return "";
  }
  if (test.verdict == Verdict::skipped) return skip_line(test, log, style_);
  Finding finding{test.test->id, label_of(*test.test), test.verdict,
                  test.tally,    std::move(log),       test.gate};
  const bool says_little = test.verdict == Verdict::passed && !test.reason.empty();
  const std::string lines = repeated(test.test->id) && !says_little ? repeated_lines(finding) : "";
  if (test.verdict != Verdict::passed) findings_.push_back(std::move(finding));
  return lines;
}

std::string Summary::repeated_lines(const Finding& finding) const {
  const bool passed = finding.verdict == Verdict::passed;
  const bool flaky = finding.verdict == Verdict::flaky;
  const Tone tone = passed ? Tone::good : flaky ? Tone::doubtful : Tone::bad;
  const std::string rate =
      rate_text(finding.tally.failures, finding.tally.passes + finding.tally.failures);
  return status_line(style_, tone,
                     passed  ? "PASS"
                     : flaky ? "FLAKY"
                             : "FAIL",
                     std::nullopt, fmt::format("{}: {}", finding.label, rate)) +
         group_lines(finding.log);
}

std::string Summary::retried_line(const Finding& finding) const {
  const bool known = finding.gate && finding.gate->kind == GateKind::quarantined;
  const bool flaky = finding.verdict == Verdict::flaky;
  const std::string status = known ? "QUARANTINED"
                             : flaky
                                 ? fmt::format("FLAKY {}/{}", finding.tally.runs(), retries_ + 1)
                                 : finding.log.last_status;
  return status_line(style_, known || flaky ? Tone::doubtful : Tone::bad, status,
                     finding.log.last_duration, finding.label) +
         group_lines(finding.log);
}

std::string Summary::verdict_lines(const Finding& finding) const {
  std::string lines = repeated(finding.id) ? repeated_lines(finding) : retried_line(finding);
  if (!finding.gate) return lines;
  if (says_more(*finding.gate)) lines += detail_line(one_line(finding.gate->text));
  if (!finding.gate->past.empty())
    lines += detail_line(one_line(finding.gate->past + "; failed again"));
  for (const std::string& command : finding.gate->next)
    lines += detail_line("next: " + one_line(command));
  return lines;
}

std::string Summary::found_lines(size_t most) const {
  const size_t first = findings_.size() - std::min(most, findings_.size());
  std::string lines;
  if (first > 0) lines += detail_line(fmt::format("({} failed or flaky before these)", first));
  for (size_t i = first; i < findings_.size(); ++i) lines += verdict_lines(findings_[i]);
  return lines;
}

// What fails the build comes last, where a reader of a log looks first.
int Summary::weight_of(const Finding& finding) {
  if (!finding.gate) return finding.verdict == Verdict::failed ? 2 : 1;
  if (fails_build(finding.gate->kind)) return 2;
  return finding.gate->kind == GateKind::flaky_new ? 1 : 0;
}

std::string Summary::all_lines() const {
  std::string lines;
  for (const int weight : {0, 1, 2})
    for (const Finding& finding : findings_)
      if (weight_of(finding) == weight) lines += verdict_lines(finding);
  return lines;
}

std::string Summary::counts(const SessionEnded& session) const {
  const int tests =
      session.passed + session.failed + session.flaky + session.skipped + session.not_run;
  std::string text =
      fmt::format("{}, {}:", counted(tests, "test"), counted(session.runs.runs(), "run"));
  std::string_view separator = " ";
  const auto add = [&](int count, Tone tone, std::string_view word) {
    if (count == 0) return;
    text += fmt::format("{}{}", separator, style_.paint(tone, fmt::format("{} {}", count, word)));
    separator = ", ";
  };
  add(session.passed, Tone::good, "passed");
  if (const auto& gate = session.gate) {
    add(gate->failed, Tone::bad, "failed");
    add(gate->other_signature, Tone::bad, "failed in another way than is in quarantine");
    add(gate->expired, Tone::bad, "failed after the quarantine expired");
    add(gate->flaky_new, Tone::doubtful, "newly flaky");
    add(gate->flaky_known, Tone::faint, "known to be flaky");
    add(gate->quarantined, Tone::faint, "quarantined");
  } else {
    add(session.failed, Tone::bad, "failed");
    add(session.flaky, Tone::doubtful, "flaky");
  }
  add(session.skipped, Tone::faint, "skipped");
  add(session.not_run, Tone::plain, "not run");
  return tests == 0 ? "no tests" : text;
}

std::string Summary::not_run_lines() const {
  std::string lines;
  for (const auto& [reason, tests] : not_run_) {
    const std::string why = reason.empty() ? "" : fmt::format(": {}", one_line(reason));
    lines +=
        status_line(style_, Tone::plain, "NOT RUN", std::nullopt, counted(tests, "test") + why);
  }
  return lines;
}

// One example of each is enough: the user can fill in the other names.
std::string Summary::next_lines() const {
  std::string lines;
  if (!options_.next_step) return lines;
  for (const Verdict verdict : {Verdict::failed, Verdict::flaky}) {
    for (const Finding& finding : findings_) {
      if (finding.verdict != verdict || (finding.gate && !finding.gate->next.empty())) continue;
      const std::string step = options_.next_step(finding.id, verdict);
      if (!step.empty())
        lines += status_line(style_, Tone::plain, "next", std::nullopt, one_line(step));
      break;
    }
  }
  return lines;
}

std::string Summary::slowest_lines(const SessionEnded& session) const {
  std::string lines;
  for (const SlowTest& slow : session.slowest)
    lines += status_line(style_, Tone::plain, lines.empty() ? "slowest" : "", slow.duration,
                         label_of(*slow.test));
  return lines;
}

std::string Summary::seed_line() const {
  if (!seed_) return "";
  const std::string repeat = options_.repeat_order ? options_.repeat_order(*seed_) : "";
  const std::string how = repeat.empty() ? "" : "; for the same order: " + repeat;
  return status_line(style_, Tone::plain, "seed", std::nullopt, fmt::format("{}{}", *seed_, how));
}

std::string Summary::text(const SessionEnded& session) const {
  std::string text(72, '-');
  text += '\n';
  for (const Note& note : notes_) text += note_lines(note, style_);
  text += all_lines();
  text += not_run_lines();
  text += slowest_lines(session);
  if (session.interrupted)
    text += status_line(style_, Tone::doubtful, "Interrupted", std::nullopt,
                        "the runs that ended before are kept and counted");
  text += seed_line();
  if (!why_repeated_.empty())
    text += status_line(style_, Tone::plain, "changed", std::nullopt, one_line(why_repeated_));
  text += next_lines();
  return text + status_line(style_, Tone::plain, "Summary", session.elapsed, counts(session));
}

namespace {

using Level = NotableTest::Level;

bool is_notable(const TestEnded& test) {
  return test.tally.failures > 0 || test.verdict == Verdict::not_run;
}

Level level_of(const TestEnded& test) {
  if (!test.gate) return test.verdict == Verdict::flaky ? Level::warning : Level::error;
  if (fails_build(test.gate->kind) || test.verdict == Verdict::not_run) return Level::error;
  return test.gate->kind == GateKind::flaky_new ? Level::warning : Level::notice;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warning:
      return "warning";
    case Level::notice:
      return "notice";
  }
  return "?";
}

void NotableTests::take(const RunEnded& run) {
  const Outcome& outcome = run.result.outcome;
  if (!outcome.failed() || outcome.failures.empty()) return;
  first_failures_.emplace(run.test->id, outcome.failures.front());
}

void NotableTests::take(const TestEnded& ended) {
  const auto known = first_failures_.extract(ended.test->id);
  if (!is_notable(ended)) return;
  NotableTest test;
  test.level = level_of(ended);
  test.test = ended.test->id;
  test.status = ended.gate ? to_string(ended.gate->kind) : to_string(ended.verdict);
  test.why = ended.gate && !ended.gate->text.empty() ? ended.gate->text : ended.reason;
  test.tally = ended.tally;
  if (!known.empty()) {
    test.headline = headline(known.mapped());
    test.file = known.mapped().file;
    test.line = known.mapped().line;
  }
  tests_.push_back(std::move(test));
}

std::vector<NotableTest> NotableTests::most_important_first() const {
  std::vector<NotableTest> sorted = tests_;
  std::ranges::stable_sort(sorted, {}, &NotableTest::level);
  return sorted;
}

}  // namespace unflake
