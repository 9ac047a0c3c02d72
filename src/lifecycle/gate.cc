#include "lifecycle/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_headline = 200;

std::string command_line(std::string_view command, const TestId& test, std::string_view option,
                         const std::string& signature) {
  std::string line = fmt::format("unflake {} {}", command, shell_quote(to_string(test)));
  if (!signature.empty()) line += fmt::format(" {} {}", option, signature);
  return line;
}

std::string add_command(const TestId& test, const std::string& signature) {
  return command_line("quarantine add", test, "--signature", signature);
}

std::string reproduce_command(const TestId& test, const std::string& signature) {
  return command_line("reproduce", test, "--failure", signature);
}

// "1234567890abcdef (server_test.cc:42: EXPECT_EQ(a, b))"
std::string named(const std::string& signature, const std::string& headline) {
  const std::string name = signature.empty() ? "no signature" : signature;
  if (headline.empty()) return name;
  return fmt::format("{} ({})", name, printable(shorten(headline, longest_headline)));
}

std::string who(const QuarantineEntry& entry) {
  std::string text;
  if (!entry.owner.empty()) text += ", owner " + printable(entry.owner);
  if (!entry.issue.empty()) text += ", " + printable(entry.issue);
  return text;
}

std::string days_text(int days) {
  return days == 1 ? "1 day" : fmt::format("{} days", days);
}

// What the attempts of one test show, sorted by what the quarantine knows about it.
struct Sorted {
  RunsMade made = RunsMade::here;
  int passes = 0, failures = 0, skips = 0;
  bool sanitizer = false;
  std::map<std::string, std::string> headlines;  // by signature
  std::vector<std::string> unknown;
  std::vector<const QuarantineEntry*> active, expired;
};

Sorted sort(std::span<const GateAttempt> attempts, std::span<const QuarantineEntry> entries,
            Day today, RunsMade made) {
  Sorted sorted;
  sorted.made = made;
  for (const GateAttempt& attempt : attempts) {
    if (attempt.outcome == OutcomeKind::pass) sorted.passes += attempt.runs;
    if (attempt.outcome == OutcomeKind::skipped) sorted.skips += attempt.runs;
    if (!is_failing(attempt.outcome)) continue;
    sorted.failures += attempt.runs;
    if (!sorted.headlines.try_emplace(attempt.signature, attempt.headline).second) continue;
    const auto entry = std::ranges::find(entries, attempt.signature, &QuarantineEntry::signature);
    if (entry == entries.end()) {
      sorted.unknown.push_back(attempt.signature);
      sorted.sanitizer = sorted.sanitizer || attempt.sanitizer;
    } else {
      (entry->has_expired(today) ? sorted.expired : sorted.active).push_back(&*entry);
    }
  }
  return sorted;
}

std::string runs_text(const Sorted& sorted) {
  const int runs = sorted.passes + sorted.failures;
  if (sorted.passes > 0) return fmt::format("failed in {} of {} runs", sorted.failures, runs);
  return runs == 1 ? "failed in its only run" : fmt::format("failed in all of {} runs", runs);
}

std::string unknown_text(const Sorted& sorted) {
  std::vector<std::string> texts;
  for (const std::string& signature : sorted.unknown)
    texts.push_back(named(signature, sorted.headlines.at(signature)));
  return join(texts, ", ");
}

void propose_to_reproduce(GateDecision& decision, const Sorted& sorted, const TestId& test,
                          const std::string& signature) {
  if (sorted.made == RunsMade::here) decision.next.push_back(reproduce_command(test, signature));
}

void take_entry(GateDecision& decision, const QuarantineEntry& entry) {
  decision.until = format_day(entry.expires);
  decision.owner = entry.owner;
  decision.issue = entry.issue;
}

void decide_known(GateDecision& decision, const Sorted& sorted, Day today) {
  const QuarantineEntry& entry = **std::ranges::min_element(
      sorted.active, {}, [](const QuarantineEntry* one) { return one->expires; });
  take_entry(decision, entry);
  decision.kind = sorted.passes > 0 ? GateKind::flaky_known : GateKind::quarantined;
  const int left = static_cast<int>((entry.expires - today).count());
  decision.text = fmt::format("{}; in quarantine until {} ({} left){}", runs_text(sorted),
                              decision.until, days_text(left), who(entry));
}

void decide_expired(GateDecision& decision, const Sorted& sorted, const TestId& test) {
  const QuarantineEntry& entry = *sorted.expired.front();
  take_entry(decision, entry);
  decision.kind = GateKind::expired;
  decision.text =
      fmt::format("{}; its quarantine for {} began {} and expired after {}{}", runs_text(sorted),
                  entry.signature, format_day(entry.since), decision.until, who(entry));
  propose_to_reproduce(decision, sorted, test, entry.signature);
  decision.next.push_back(add_command(test, entry.signature) + " --days 30   # prolongs it");
}

void decide_other(GateDecision& decision, const Sorted& sorted, const TestId& test,
                  const QuarantineEntry& entry) {
  take_entry(decision, entry);
  decision.kind = GateKind::other_signature;
  decision.text = fmt::format("{}; it is in quarantine for {}, not for {}", runs_text(sorted),
                              named(entry.signature, entry.failure), unknown_text(sorted));
  propose_to_reproduce(decision, sorted, test, sorted.unknown.front());
}

void decide_unknown(GateDecision& decision, const Sorted& sorted, const TestId& test) {
  const std::string& signature = sorted.unknown.front();
  const bool flaky = sorted.passes > 0 && !sorted.sanitizer;
  decision.kind = flaky ? GateKind::flaky_new : GateKind::failed;
  decision.text = fmt::format("{}: {}", runs_text(sorted), unknown_text(sorted));
  if (sorted.sanitizer) decision.text += "; what a sanitizer reports is a defect, not a flake";
  if (flaky) decision.next.push_back(add_command(test, signature));
  if (sorted.passes > 0) propose_to_reproduce(decision, sorted, test, signature);
}

}  // namespace

GateAttempt gate_attempt_of(const Outcome& outcome) {
  GateAttempt attempt;
  attempt.outcome = outcome.kind;
  attempt.signature = outcome.signature;
  if (!outcome.failed() || outcome.failures.empty()) return attempt;
  attempt.headline = headline(outcome.failures.front());
  attempt.without_place = is_without_place(outcome.failures.front());
  attempt.sanitizer = std::ranges::any_of(
      outcome.failures, [](const Failure& failure) { return is_sanitizer(failure.kind); });
  return attempt;
}

GateDecision Gate::decide(const TestId& test, std::span<const GateAttempt> attempts) const {
  const auto entries = quarantine_.of(test);
  const Sorted sorted = sort(attempts, entries, today_, made_);
  GateDecision decision;
  decision.unknown = sorted.unknown;
  decision.sanitizer = sorted.sanitizer;
  for (const QuarantineEntry* entry : sorted.active) decision.known.push_back(entry->signature);
  const auto active = std::ranges::find_if(
      entries, [&](const QuarantineEntry& entry) { return !entry.has_expired(today_); });
  if (!sorted.unknown.empty() && active != entries.end())
    decide_other(decision, sorted, test, *active);
  else if (!sorted.unknown.empty())
    decide_unknown(decision, sorted, test);
  else if (!sorted.expired.empty())
    decide_expired(decision, sorted, test);
  else if (!sorted.active.empty())
    decide_known(decision, sorted, today_);
  else if (sorted.passes == 0)
    decision.kind = sorted.skips > 0 ? GateKind::skipped : GateKind::not_run;
  return decision;
}

namespace {

std::optional<TimePoint> last_seen(const TestSummary& test, const std::string& signature) {
  const auto found = std::ranges::find(test.signatures, signature, &SignatureSummary::signature);
  if (found == test.signatures.end()) return std::nullopt;
  return found->last;
}

}  // namespace

// Another failure of the test is not a clean run either: what counts began after the last one of
// any kind.
Result<QuarantinedPast> past_of(Store& store, const QuarantineEntry& entry) {
  QuarantinedPast past;
  const auto summary = store.summarise_test(entry.test);
  if (!summary) return summary.error();
  if (!*summary) return past;
  past.last_run = (*summary)->last;
  past.last_seen = last_seen(**summary, entry.signature);
  const TimePoint next_moment = past.last_seen.value_or(entry.since) + std::chrono::microseconds(1);
  const auto before =
      store.count_runs(entry.test, entry.signature, {TimePoint::min(), next_moment});
  if (!before) return before.error();
  auto after = store.count_runs(entry.test, entry.signature, {next_moment, TimePoint::max()});
  if (after && after->failures > 0 && after->last_failure)
    after =
        store.count_runs(entry.test, entry.signature,
                         {*after->last_failure + std::chrono::microseconds(1), TimePoint::max()});
  if (!after) return after.error();
  past.runs = {after->failures == 0 ? after->passes : 0, before->with_signature,
               before->passes + before->failures};
  return past;
}

LifecycleStep lifecycle_step(LifecycleStep::Kind kind, const QuarantineEntry& entry, TimePoint at) {
  LifecycleStep step;
  step.kind = kind;
  step.test = entry.test;
  step.signature = entry.signature;
  step.at = at;
  step.reason = entry.reason;
  step.owner = entry.owner;
  step.url = entry.issue;
  return step;
}

}  // namespace unflake
