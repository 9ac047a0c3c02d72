#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/signal_name.h"

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

}  // namespace unflake
