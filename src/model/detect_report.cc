#include "model/detect_report.h"

#include <algorithm>
#include <tuple>

#include "util/text.h"

namespace unflake {

std::string_view to_string(CommitLook::Answer answer) {
  switch (answer) {
    case CommitLook::Answer::fails:
      return "fails";
    case CommitLook::Answer::holds:
      return "holds";
    case CommitLook::Answer::untold:
      return "cannot be told";
  }
  return "?";
}

int CommitBisection::runs() const {
  int all = 0;
  for (const Step& step : steps) all += step.look.runs;
  return all;
}

const BisectReport::Commit* BisectReport::first() const {
  const bool is_known = bisection.answer == CommitBisection::Answer::found;
  return is_known ? &commits.at(bisection.first_failing) : nullptr;
}

std::string short_id(const BisectReport::Commit& commit) {
  return printable(commit.id.substr(0, 10));
}

std::string_view to_string(DetectedTest::Answer answer) {
  switch (answer) {
    case DetectedTest::Answer::seen_flaky:
      return "seen_flaky";
    case DetectedTest::Answer::fails_perturbed:
      return "fails_perturbed";
    case DetectedTest::Answer::no_sign:
      return "no_sign";
    case DetectedTest::Answer::always_fails:
      return "always_fails";
    case DetectedTest::Answer::skipped:
      return "skipped";
    case DetectedTest::Answer::not_run:
      return "not_run";
  }
  return "not_run";
}

size_t DetectReport::count(DetectedTest::Answer answer) const {
  return static_cast<size_t>(std::ranges::count(tests, answer, &DetectedTest::answer));
}

size_t DetectReport::lacked_time() const {
  return static_cast<size_t>(
      std::ranges::count_if(tests, [](const DetectedTest& test) { return test.lacked_time; }));
}

std::optional<Duration> slack_of(const Repro& repro) {
  if (repro.slack) return repro.slack->fails;
  if (repro.plan.schedule) return repro.plan.schedule->stall;
  if (longest_delay(repro.plan) == Duration::zero()) return Duration::zero();
  return std::nullopt;
}

void sort_by_answer(std::vector<DetectedTest>& tests) {
  const auto rank = [](const DetectedTest& test) {
    const auto slack = test.perturbed ? slack_of(*test.perturbed) : std::nullopt;
    return std::tuple(test.answer, slack.value_or(Duration::max()), -test.chance, test.id);
  };
  std::ranges::stable_sort(tests, {}, rank);
}

}  // namespace unflake
