#include "ingest/build_results.h"

#include <algorithm>
#include <functional>

#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_kept_message = 1000;
constexpr size_t most_tests = 1'000'000;
constexpr uint8_t has_passed = 1, has_failed = 2;

uint64_t hash_of(const TestId& test) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  return hash(test.target) * odd + hash(test.name);
}

Outcome outcome_of(const RunRecord& run) {
  Outcome outcome;
  outcome.kind = run.outcome;
  outcome.duration = run.duration;
  outcome.signature = run.signature;
  if (!run.failure) return outcome;
  outcome.failures.push_back(*run.failure);
  Failure& kept = outcome.failures.front();
  for (std::string* text : {&kept.message, &kept.expression, &kept.function})
    *text = shorten(*text, longest_kept_message);
  return outcome;
}

// Without a signature it is never taken for a known failure.
Outcome outcome_of_others() {
  Outcome outcome;
  outcome.kind = OutcomeKind::fail;
  outcome.failures.emplace_back();
  outcome.failures.front().kind = FailureKind::assertion;
  outcome.failures.front().message = "other failures, each different";
  return outcome;
}

}  // namespace

void FlakyTests::add(std::span<const RunRecord> runs) {
  for (const RunRecord& run : runs) {
    if (run.outcome == OutcomeKind::skipped) continue;
    const uint64_t test = hash_of(run.test);
    if (seen_.size() >= most_tests && !seen_.contains(test)) continue;
    uint8_t& seen = seen_[test];
    const uint8_t before = seen;
    seen |= is_failing(run.outcome) ? has_failed : has_passed;
    count_ += seen != before && seen == (has_passed | has_failed);
  }
}

void BuildResults::add(SessionId session, std::span<const RunRecord> runs) {
  for (const RunRecord& run : runs)
    if (is_failing(run.outcome))
      add_failure(session, run);
    else
      add_other(run);
}

void BuildResults::add_failure(SessionId session, const RunRecord& run) {
  if (failed_.size() >= bounds_.failed_tests && !failed_.contains(run.test)) {
    ++failures_left_out_;
    return;
  }
  FailedTest& test = failed_[run.test];
  auto& failures = test.failures;
  auto seen = std::ranges::find_if(failures, [&](const SeenFailure& one) {
    return one.outcome.signature == run.signature && one.outcome.kind == run.outcome;
  });
  if (seen == failures.end() && failures.size() > bounds_.failures) seen = failures.end() - 1;
  if (seen == failures.end()) {
    const bool is_full = failures.size() == bounds_.failures;
    failures.push_back({is_full ? outcome_of_others() : outcome_of(run), 0, {}});
    seen = failures.end() - 1;
  }
  ++test.runs;
  if (run.duration != unknown_duration) test.latest = run.duration;
  ++seen->runs;
  seen->sessions.insert(session);
}

void BuildResults::add_other(const RunRecord& run) {
  const auto failed = failed_.find(run.test);
  if (failed != failed_.end() && run.duration != unknown_duration)
    failed->second.latest = run.duration;
  const uint64_t hash = hash_of(run.test);
  auto found = others_.find(hash);
  if (found == others_.end()) {
    if (others_.size() >= bounds_.tests && failed == failed_.end()) {
      ++passes_left_out_;
      return;
    }
    found = others_.emplace(hash, Passes()).first;
  }
  ++(run.outcome == OutcomeKind::pass ? found->second.passes : found->second.skips);
}

Tally BuildResults::tally_of(const TestId& test) const {
  Tally tally;
  if (const auto failed = failed_.find(test); failed != failed_.end())
    tally.failures = failed->second.runs;
  if (const auto other = others_.find(hash_of(test)); other != others_.end()) {
    tally.passes = static_cast<int>(other->second.passes);
    tally.skips = static_cast<int>(other->second.skips);
  }
  return tally;
}

BuildResults::TestCounts BuildResults::others() const {
  std::set<uint64_t> failed;
  for (const auto& [test, seen] : failed_) failed.insert(hash_of(test));
  TestCounts counts;
  for (const auto& [hash, other] : others_) {
    counts.passes += other.passes;
    counts.skips += other.skips;
    if (!failed.contains(hash)) ++(other.passes > 0 ? counts.passed : counts.skipped);
  }
  return counts;
}

}  // namespace unflake
