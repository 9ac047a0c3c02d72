#include "lifecycle/clean_runs.h"

#include <algorithm>

namespace unflake {
namespace {

std::optional<TimePoint> last_seen(const TestSummary& test, const std::string& signature) {
  const auto found = std::ranges::find(test.signatures, signature, &SignatureSummary::signature);
  if (found == test.signatures.end()) return std::nullopt;
  return found->last;
}

}  // namespace

// Another failure of the test is no clean run either: what counts began behind the last one of any
// kind.
Result<QuarantinedPast> past_of(Store& store, const QuarantineEntry& entry) {
  QuarantinedPast past;
  const auto summary = store.summarise_test(entry.test);
  if (!summary) return summary.error();
  if (!*summary) return past;
  past.last_run = (*summary)->last;
  past.last_seen = last_seen(**summary, entry.signature);
  const TimePoint behind = past.last_seen.value_or(entry.since) + std::chrono::microseconds(1);
  const auto before = store.count_runs(entry.test, entry.signature, {TimePoint::min(), behind});
  if (!before) return before.error();
  auto after = store.count_runs(entry.test, entry.signature, {behind, TimePoint::max()});
  if (after && after->failures > 0 && after->last_failure)
    after =
        store.count_runs(entry.test, entry.signature,
                         {*after->last_failure + std::chrono::microseconds(1), TimePoint::max()});
  if (!after) return after.error();
  past.runs = {after->failures == 0 ? after->passes : 0, before->with_signature,
               before->passes + before->failures};
  return past;
}

LifecycleEvent lifecycle_event(LifecycleEvent::Kind kind, const QuarantineEntry& entry,
                               TimePoint at) {
  LifecycleEvent event;
  event.kind = kind;
  event.test = entry.test;
  event.signature = entry.signature;
  event.at = at;
  event.reason = entry.reason;
  event.owner = entry.owner;
  event.url = entry.issue;
  return event;
}

}  // namespace unflake
