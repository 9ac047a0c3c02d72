#include "cli/repeat_changed.h"

#include <fmt/format.h>

#include "report/style.h"
#include "stats/intervals.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

struct Found {
  int fresh = 0, changed = 0, undecided = 0;
  int all() const { return fresh + changed + undecided; }
};

std::string text_of(const Found& found, int runs, const std::string& revision) {
  if (found.all() == 0) return fmt::format("no test is new or changed since {}", revision);
  std::vector<std::string> parts;
  if (found.fresh > 0) parts.push_back(fmt::format("{} new", found.fresh));
  if (found.changed > 0) parts.push_back(fmt::format("{} changed", found.changed));
  if (found.undecided > 0)
    parts.push_back(fmt::format("{} that may be (the suite does not tell where it is written)",
                                found.undecided));
  return fmt::format(
      "{} since {}: {}, {} each; 0 failures of {} prove a failure rate below {} at "
      "95 % confidence",
      counted(found.all(), "test"), printable(revision), join(parts, ", "), counted(runs, "run"),
      runs, percent(upper_bound_zero_failures(runs)));
}

// History does not know a test that is new; one that it does not know may be as old as its lines.
Result<bool> is_new(const TestId& test, Store* store) {
  if (!store) return false;
  const auto known = store->summarise_test(test);
  if (!known) return known.error();
  return !known->has_value();
}

}  // namespace

Result<std::string> repeat_what_changed(std::vector<PlannedTest>& plan, const ChangedTests& tests,
                                        int runs, const std::string& revision, Store* store) {
  Found found;
  for (PlannedTest& planned : plan) {
    const bool undecided = tests.undecided.contains(planned.test->id);
    const bool changed = tests.changed.contains(planned.test->id);
    if (planned.role != PlannedTest::Role::test || (!undecided && !changed)) continue;
    const auto fresh = is_new(planned.test->id, store);
    if (!fresh) return fresh.error();
    ++(*fresh ? found.fresh : changed ? found.changed : found.undecided);
    planned.repeat = runs;
    planned.retries = 0;
  }
  return text_of(found, runs, revision);
}

}  // namespace unflake
