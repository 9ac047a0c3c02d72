#include "history/totals.h"

#include <algorithm>

namespace unflake {
namespace {

// A time that is not known adds nothing, and is neither the shortest nor the longest.
Total total_of(const RunRow& run) {
  const bool is_known = run.has_duration();
  return {.runs = 1,
          .sum_us = is_known ? static_cast<double>(run.duration_us) : 0,
          .min_us = is_known ? run.duration_us : INT64_MAX,
          .max_us = is_known ? run.duration_us : 0,
          .first_us = run.started_us,
          .first_session = run.session,
          .last_us = run.started_us,
          .last_session = run.session};
}

}  // namespace

void Total::merge(const Total& other) {
  if (other.runs == 0) return;
  if (runs == 0) {
    *this = other;
    return;
  }
  runs += other.runs;
  sum_us += other.sum_us;
  min_us = std::min(min_us, other.min_us);
  max_us = std::max(max_us, other.max_us);
  if (other.first_us < first_us) {
    first_us = other.first_us;
    first_session = other.first_session;
  }
  if (other.last_us >= last_us) {
    last_us = other.last_us;
    last_session = other.last_session;
  }
}

void Totals::add(const RunRow& run) {
  totals[{run.test, run.outcome, run.signature}].merge(total_of(run));
  const OutcomeKind outcome = outcome_from_code(run.outcome);
  if (outcome == OutcomeKind::skipped || !run.has_duration()) return;
  durations[{run.test, is_failing(outcome)}].add(Histogram::bucket_of(run.duration_us), 1);
}

Histogram Totals::durations_of(int64_t test, bool failing) const {
  const auto found = durations.find({test, failing});
  return found != durations.end() ? found->second : Histogram();
}

int64_t sane_count(int64_t count) {
  return std::clamp<int64_t>(count, 0, int64_t{1} << 40);
}

}  // namespace unflake
