#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance.h"
#include "stats/distribution.h"
#include "trace/names.h"
#include "trace/time_values.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration little = 1ms;
constexpr int runs_to_call_it_broken = 15;
constexpr int little_share = 100;  // a hundredth of the run

std::string without_climbs(std::string path) {
  while (path.starts_with("../")) path.erase(0, 3);
  return path;
}

bool is_same_file(const std::string& one, const std::string& other) {
  return ("/" + one).ends_with("/" + other) || ("/" + other).ends_with("/" + one);
}

// As the site is written, with as many of the folders before it and as little after the line as is
// liked.
bool is_named_by(const TimeValue& value, const std::string& word) {
  const SiteName& site = value.site;
  const std::string text = to_string(site);
  if (text == word || text.starts_with(word + ":")) return true;
  const auto wanted = parse_site(word);
  if (!wanted || wanted->file.empty() || wanted->line != site.line || wanted->image != site.image)
    return false;
  const bool is_same_call = wanted->api == site.api && wanted->nth == site.nth;
  return (wanted->api.empty() || is_same_call) &&
         is_same_file(wanted->file, value.file.empty() ? site.file : without_climbs(value.file));
}

std::vector<const Trace*> traces_of(const std::vector<ExperimentResult>& runs) {
  std::vector<const Trace*> traces;
  for (const ExperimentResult& run : runs)
    if (run.trace) traces.push_back(run.trace.get());
  return traces;
}

void add_files(std::vector<TimeValue>& values, const std::vector<const Trace*>& traces) {
  for (TimeValue& value : values)
    for (const Trace* trace : traces)
      if (value.file.empty()) value.file = place_of(*trace, value.site).file;
}

// Where the call that takes the time is: the innermost code outside of system headers.
const Frame* passer_of(const Trace& trace, const TracedCall& call) {
  if (call.stack >= trace.stacks.size()) return nullptr;
  for (const TracedFrame& frame : trace.stacks[call.stack].frames)
    for (const Frame& source : frame.source)
      if (source.line > 0 && !source.file.empty() && !source.file.starts_with("/usr/"))
        return &source;
  return nullptr;
}

// A site is where the project's code calls; the value may stand further in, in code that is not
// the project's.
void mark_other_code(std::vector<TimeValue>& values, const std::vector<const Trace*>& traces) {
  for (const Trace* trace : traces) {
    std::vector<TimeValue*> by_site;
    for (const TracedSite& site : trace->sites) {
      const auto found = std::ranges::find(values, site.name, &TimeValue::site);
      by_site.push_back(found == values.end() ? nullptr : &*found);
    }
    for (const TracedCall& call : trace->calls) {
      TimeValue* value = call.site < by_site.size() ? by_site[call.site] : nullptr;
      const Frame* passer = value && !value->file.empty() ? passer_of(*trace, call) : nullptr;
      if (passer && passer->file != value->file) value->is_project = false;
    }
  }
}

// Calls that system libraries make for themselves show in one run of their own: recording them in
// the others would slow the test down.
Result<void> add_other_code(BalanceRuns& runs, const Plan& plan, std::vector<TimeValue>& values) {
  Plan wider = plan;
  wider.system_calls = true;
  const auto run = runs.look(wider, TrialEnded::Purpose::look);
  if (!run || !run->trace)
    return runs.runner().error() ? Result<void>(*runs.runner().error()) : Result<void>();
  const Trace* trace = run->trace.get();
  for (TimeValue& value : time_values({&trace, 1}))
    if (!value.is_project &&
        std::ranges::find(values, value.site, &TimeValue::site) == values.end()) {
      value.is_system_call = true;
      values.push_back(std::move(value));
    }
  return {};
}

void add_times(TimeProfile& profile, const std::vector<ExperimentResult>& runs) {
  std::vector<double> passing;
  Duration processor{}, wall{};
  for (const ExperimentResult& run : runs) {
    profile.failures.add(run.outcome.failed());
    if (!run.outcome.failed()) passing.push_back(to_ms(run.outcome.duration));
    processor += run.process.user_cpu + run.process.system_cpu;
    wall += run.process.duration;
  }
  profile.run_time = spread_of(passing);
  if (wall > Duration::zero())
    profile.processor_share =
        static_cast<double>(processor.count()) / static_cast<double>(wall.count());
}

}  // namespace

Result<TimeProfile> profile_times(BalanceRuns& runs, const Plan& plan, int wanted) {
  TimeProfile profile;
  std::vector<ExperimentResult> seen;
  Plan traced = plan;
  traced.agent = traced.calls = traced.stacks = true;
  int failed = 0;
  for (int i = 0; i < wanted; ++i) {
    auto run = runs.look(traced, TrialEnded::Purpose::profile);
    if (!run) break;
    if (run->outcome.kind == OutcomeKind::skipped) profile.is_skipped = true;
    failed += run->outcome.failed();
    seen.push_back(std::move(*run));
    if (profile.is_skipped) break;
    // Nothing but failures may be a test that mostly fails.
    if (i + 1 == wanted && failed == wanted) wanted = runs_to_call_it_broken;
  }
  if (runs.runner().error()) return *runs.runner().error();
  const auto traces = traces_of(seen);
  profile.values = time_values(traces);
  add_files(profile.values, traces);
  mark_other_code(profile.values, traces);
  add_times(profile, seen);
  if (profile.is_skipped || runs.over()) return profile;
  if (auto done = add_other_code(runs, traced, profile.values); !done) return done.error();
  return profile;
}

std::string why_not_searched(const TimeValue& value, const TimeProfile& profile,
                             const std::vector<std::string>& sites) {
  if (!sites.empty()) {
    const bool named =
        std::ranges::any_of(sites, [&](const auto& word) { return is_named_by(value, word); });
    return named ? "" : "it was not asked for";
  }
  if (!value.is_project) return "it belongs to code that is not the project's";
  if (value.use() == TimeUse::timeout)
    return "it always ended early, so that a shorter one would not make the test faster";
  const Duration spent = value.spent_per_run();
  const bool is_seen = value.use() != TimeUse::not_seen;
  const Duration run = from_ms(profile.run_time.median);
  if (is_seen && (spent < little || spent * little_share < run))
    return fmt::format("it takes {} of a run of {}", format_duration(spent), format_duration(run));
  if (!value.callers.empty())
    return "one number for all of them would say nothing, so look at what each costs, and change "
           "it there";
  return "";
}

}  // namespace unflake
