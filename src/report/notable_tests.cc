#include "report/notable_tests.h"

#include <algorithm>

namespace unflake {
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
