#include "cli/search_verdict.h"

#include <fmt/format.h>

#include <algorithm>
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
  Lines lines;
  if (outcome.kind == OutcomeKind::timeout)
    lines.push_back(fmt::format("hangs: none of {} without delays came to an end; one was given {}",
                                counted(base.runs, "run"), format_duration(outcome.duration)));
  else
    lines.push_back(fmt::format(
        "broken: not flaky: all {} without delays failed (at least {:.0f} % of its runs do)",
        counted(base.runs, "run"), exact_interval(base.failures, base.runs).low * 100));
  lines.push_back("failure: " + failure_headline(outcome));
  lines.push_back(outcome.kind == OutcomeKind::timeout
                      ? "next: `unflake run` shows where every thread stands; is it only slow, "
                        "give it a longer --timeout and --budget"
                      : "next: mend that first; `unflake trace` shows where it happens");
  return lines;
}

Lines skipped_lines(const Hunt& hunt) {
  const Outcome& outcome = hunt.profile().runs.front().outcome;
  return {"skipped: the test says that it cannot run here" +
              (outcome.reason.empty() ? "" : ": " + one_line(outcome.reason)),
          "next: make it run (`unflake run` shows its output), then hunt again"};
}

std::string_view heading(const Hunt& hunt) {
  if (hunt.stopped()) return "stopped: nothing was confirmed until then";
  if (hunt.out_of_budget()) return "not found: within the budget";
  return "not found: by any of the strategies";
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
    lines.push_back(fmt::format("by itself: 0 of {} without delays failed: fewer than {:.0f} % do",
                                counted(base.runs, "run"),
                                upper_bound_zero_failures(base.runs) * 100));
  else
    lines.push_back(
        fmt::format("by itself: {} of {} runs without delays failed", base.failures, base.runs));
}

std::string tried_text(const Coverage& coverage) {
  const std::string runs = counted(coverage.search_runs, "experiment");
  if (coverage.sites_tried.empty())
    return fmt::format("tried: {}, none of them with a delay", runs);
  return fmt::format("tried: {} at {} (before or after a call); delays happened in {} and added {}",
                     runs, counted(static_cast<long long>(coverage.sites_tried.size()), "point"),
                     coverage.fired_runs, format_duration(coverage.delay_added));
}

void add_tried(const Hunt& hunt, Lines& lines) {
  const Coverage& coverage = hunt.coverage();
  lines.push_back(tried_text(coverage));
  if (coverage.never_fired > 0)
    lines.push_back(fmt::format("no delay: happened in {}: they prove nothing",
                                counted(coverage.never_fired, "experiment")));
  if (coverage.unconfirmed > 0)
    lines.push_back(
        fmt::format("not held: {} did not come back often enough to be told from chance",
                    counted(coverage.unconfirmed, "failure")));
  size_t listed = 0;
  for (const auto& [failure, runs] : coverage.other_failures)
    if (listed++ < most_listed)
      lines.push_back(
          fmt::format("other failure: {} in {}", one_line(failure), counted(runs, "run")));
  for (const std::string& reason : coverage.refused)
    if (listed++ < 2 * most_listed) lines.push_back("refused: " + one_line(reason));
}

void add_not_covered(const Hunt& hunt, Lines& lines) {
  lines.push_back(fmt::format("not covered: lateness of more than {}; more than two late threads",
                              format_duration(hunt.options().delays.most)));
  lines.push_back(
      "not covered: races on atomics and plain memory, but where the strategy `functions` came");
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
  if (hunt.stopped()) return;
  if (hunt.profile().places.empty()) {
    lines.push_back(
        "next: no call of project code was seen; see [code] in config.toml, or --system");
    return;
  }
  if (hunt.out_of_budget())
    lines.push_back("next: the budget ran out before the search did: --budget 30m goes on");
  else
    lines.push_back(
        "next: --max-delay 60s for longer waits, --strategy one-by-one for every call by itself");
  lines.push_back("or: `unflake run -n 1000` to see whether it fails by itself, and how");
}

}  // namespace

std::vector<std::string> not_reproduced_lines(const Hunt& hunt) {
  if (hunt.always_fails()) return always_fails_lines(hunt);
  if (hunt.always_skipped()) return skipped_lines(hunt);
  Lines lines{std::string(heading(hunt))};
  add_reached(hunt, lines);
  add_tried(hunt, lines);
  add_not_covered(hunt, lines);
  add_next(hunt, lines);
  return lines;
}

}  // namespace unflake
