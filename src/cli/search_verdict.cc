#include "cli/search_verdict.h"

#include <fmt/format.h>

#include <set>

#include "report/findings.h"
#include "report/style.h"
#include "stats/intervals.h"
#include "util/text.h"

namespace unflake {
namespace {

using Lines = std::vector<std::string>;

constexpr size_t most_listed = 5;

struct Base {
  int runs = 0;
  int failures = 0;
};

Base base_of(const Hunt& hunt) {
  Base base{static_cast<int>(hunt.profile().runs.size()), hunt.profile().failures()};
  for (const Outcome& outcome : hunt.baseline()) {
    ++base.runs;
    base.failures += outcome.failed();
  }
  return base;
}

Lines always_fails_lines(const Hunt& hunt) {
  const Base base = base_of(hunt);
  const Outcome& outcome = hunt.profile().runs.front().outcome;
  const Interval rate = exact_interval(base.failures, base.runs);
  Lines lines;
  if (outcome.kind == OutcomeKind::timeout)
    lines.push_back(fmt::format("it never stops: {} without delays took longer than {}",
                                counted(base.runs, "run"), format_duration(outcome.duration)));
  else
    lines.push_back(
        fmt::format("broken, not flaky: {} of {} runs without delays failed "
                    "(at least {:.0f} % of all runs do)",
                    base.failures, base.runs, rate.low * 100));
  lines.push_back(failure_headline(outcome));
  lines.push_back("next: mend that first; `unflake trace` shows where it happens");
  return lines;
}

Lines always_skipped_lines(const Hunt& hunt) {
  const auto& runs = hunt.profile().runs;
  Lines lines;
  lines.push_back(fmt::format("skipped in {} without delays, so that there was nothing to search",
                              counted(static_cast<long long>(runs.size()), "run")));
  if (const std::string& reason = runs.front().outcome.reason; !reason.empty())
    lines.push_back("because: " + one_line(reason));
  lines.push_back("next: make it run here, as its own code or the build says when it is skipped");
  return lines;
}

size_t threads_seen(const Profile& profile) {
  std::set<std::string> names;
  for (const ExperimentResult& run : profile.runs)
    if (run.trace)
      for (const TracedThread& thread : run.trace->threads)
        names.insert(fmt::format("{} {}", thread.process, thread.name.text));
  return names.size();
}

void add_reached(const Hunt& hunt, Lines& lines) {
  const Profile& profile = hunt.profile();
  const Base base = base_of(hunt);
  lines.push_back(fmt::format("reached: {} (a site in a thread) in {}, {} on average",
                              counted(static_cast<long long>(profile.places.size()), "place"),
                              counted(static_cast<long long>(threads_seen(profile)), "thread"),
                              format_duration(profile.average)));
  if (base.failures == 0)
    lines.push_back(fmt::format("without delays: 0 of {} failed (fewer than {:.1f} % do)",
                                counted(base.runs, "run"),
                                upper_bound_zero_failures(base.runs) * 100));
  else
    lines.push_back(fmt::format("without delays: {} of {} runs failed", base.failures, base.runs));
}

void add_tried(const Hunt& hunt, Lines& lines) {
  const Coverage& coverage = hunt.coverage();
  lines.push_back(fmt::format("tried: {} at {}; delays happened in {} of them and added {}",
                              counted(coverage.search_runs, "experiment"),
                              counted(static_cast<long long>(coverage.sites_tried.size()), "place"),
                              coverage.fired_runs, format_duration(coverage.delay_added)));
  if (coverage.never_fired > 0)
    lines.push_back(fmt::format("in {} no delay happened: they prove nothing",
                                counted(coverage.never_fired, "experiment")));
  if (coverage.unconfirmed > 0)
    lines.push_back(fmt::format("{} did not come back often enough to be told from chance",
                                counted(coverage.unconfirmed, "failure")));
  size_t listed = 0;
  for (const auto& [failure, runs] : coverage.other_failures)
    if (listed++ < most_listed)
      lines.push_back(
          fmt::format("another failure, in {}: {}", counted(runs, "run"), one_line(failure)));
  for (const std::string& reason : coverage.refused)
    if (listed++ < 2 * most_listed) lines.push_back("could not be tried: " + one_line(reason));
}

void add_not_covered(const Hunt& hunt, Lines& lines) {
  lines.push_back(fmt::format(
      "not covered: lateness of more than {}; races on atomics and plain memory between two calls, "
      "except where the strategy `functions` came; more than two late threads",
      format_duration(hunt.options().delays.most)));
  std::set<std::string> gaps;
  for (const ExperimentResult& run : hunt.profile().runs) {
    if (!run.trace) continue;
    for (const TracedProcess& process : run.trace->processes)
      for (const std::string& degraded : process.degraded)
        gaps.insert(process.name + ": " + degraded);
    for (const Drops& drops : run.trace->drops)
      gaps.insert(fmt::format("{} {} were lost", drops.count, drops.what));
    for (const std::string& problem : run.trace->problems) gaps.insert(problem);
  }
  size_t listed = 0;
  for (const std::string& gap : gaps)
    if (listed++ < most_listed) lines.push_back("not covered: " + one_line(gap));
}

void add_next(const Hunt& hunt, Lines& lines) {
  if (hunt.profile().places.empty())
    lines.push_back(
        "next: no call of project code was seen; see [code] in config.toml, or --system");
  else if (hunt.out_of_budget())
    lines.push_back("next: the budget ran out before the search did: --budget 30m goes on");
  else
    lines.push_back(
        "next: --max-delay 60s for longer waits, --strategy functions,shake for other "
        "ways, `unflake run -n 1000` to see how often it fails at all");
}

}  // namespace

std::vector<std::string> not_reproduced_lines(const Hunt& hunt) {
  if (hunt.always_fails()) return always_fails_lines(hunt);
  if (hunt.always_skipped()) return always_skipped_lines(hunt);
  Lines lines;
  add_reached(hunt, lines);
  add_tried(hunt, lines);
  add_not_covered(hunt, lines);
  add_next(hunt, lines);
  return lines;
}

}  // namespace unflake
