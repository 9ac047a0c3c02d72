#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace unflake {
namespace {

constexpr size_t most_groups = 32;

std::string crash_word(const ProcessResult& process) {
  if (process.end != ProcessResult::End::signalled) return "CRASH";
  const char* name = ::sigabbrev_np(process.code);
  return name ? fmt::format("CRASH SIG{}", name) : fmt::format("CRASH signal {}", process.code);
}

// One decimal, or as many as two significant digits take.
int decimals_of(double percent) {
  if (percent <= 0 || percent >= 1) return 1;
  return 1 - static_cast<int>(std::floor(std::log10(percent)));
}

std::string percent_text(double rate) {
  return fmt::format("{:.{}f}", rate * 100, decimals_of(rate * 100));
}

// After n passes a rate of r would have shown a failure with probability 1 - (1 - r)^n. Rounded up:
// a promise must not be better than the evidence.
std::string passes_text(int runs) {
  const double bound = 100 * (1 - std::pow(0.05, 1.0 / runs));
  const int decimals = decimals_of(bound);
  const double scale = std::pow(10, decimals);
  return fmt::format("{}/{} runs (failure rate below {:.{}f} % at 95 % confidence)", runs, runs,
                     std::ceil(bound * scale) / scale, decimals);
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

std::string rate_text(const Tally& tally, const RateInterval& interval) {
  const int runs = tally.passes + tally.failures;
  if (runs == 0) return "no run";
  if (tally.failures == 0) return passes_text(runs);
  std::string text = fmt::format("{}/{} runs failed ({} %", tally.failures, runs,
                                 percent_text(static_cast<double>(tally.failures) / runs));
  if (interval) {
    const auto [low, high] = interval(tally.failures, runs);
    text += fmt::format(", 95 % interval {}..{} %", percent_text(low), percent_text(high));
  }
  return text + ")";
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
