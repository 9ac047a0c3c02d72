#include "search/balance/balance_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/outcome.h"
#include "search/balance/balance.h"
#include "stats/distribution.h"
#include "stats/rates.h"
#include "trace/names.h"
#include "trace/time_values.h"

namespace unflake {

using namespace std::chrono_literals;

Duration scaled(Duration value, double factor) {
  return Duration(std::llround(static_cast<double>(value.count()) * factor));
}

double to_ms(Duration duration) {
  return static_cast<double>(duration.count()) / 1000;
}

Duration from_ms(double ms) {
  return Duration(static_cast<int64_t>(ms * 1000));
}

Setting own_setting(const std::vector<TimeValue>& values) {
  Setting own;
  for (const TimeValue& value : values) own.push_back(value.most);
  return own;
}

bool is_set(const TimeValue& value, Duration to) {
  return to != value.most && value.most > Duration::zero();
}

Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting) {
  for (size_t i = 0; i < values.size(); ++i) {
    const TimeValue& value = values[i];
    if (!is_set(value, setting[i])) continue;
    Intervention scaled;
    scaled.site = value.site;
    scaled.executable = value.executable;
    scaled.action = Intervention::Action::scale_time;
    const double factor =
        static_cast<double>(setting[i].count()) / static_cast<double>(value.most.count());
    scaled.duration = Duration(std::llround(factor * static_cast<double>(Duration(1s).count())));
    base.interventions.push_back(std::move(scaled));
  }
  return base;
}

Conditions conditions_for(LoadLevel load, int cores) {
  Conditions conditions;
  conditions.one_core = load == LoadLevel::one_core;
  conditions.competitors = load == LoadLevel::busy ? cores : 0;
  return conditions;
}

namespace {

// Where a test often fails anyway, few more failures would take thousands of runs to tell.
constexpr double least_odds = 2;
constexpr double most_refused = 0.99;

double with_spoiled(double rate, double spoiled) {
  return rate + (1 - rate) * spoiled;
}

double refused_above(double rate, const RateCheck::Limits& limits) {
  const double odds = least_odds * rate / (1 - std::min(rate, most_refused));
  return std::min(most_refused, std::max(with_spoiled(rate, limits.refused), odds / (1 + odds)));
}

SequentialTest test_above(double rate, const RateCheck::Limits& limits) {
  return {with_spoiled(rate, limits.tolerated), refused_above(rate, limits), limits.error,
          limits.most_runs};
}

}  // namespace

double OwnFailures::rate() const {
  return failures.hits > 0 ? score_interval(failures.hits, failures.runs, 0.8).high : 0;
}

void OwnFailures::add(const Outcome& outcome) {
  failures.add(is_bad(outcome));
  if (is_bad(outcome)) signatures.insert(outcome.signature);
}

RateCheck::RateCheck(const OwnFailures& own, const Limits& limits)
    : own_(own),
      refused_rate_(refused_above(own.rate(), limits)),
      all_(test_above(own.rate(), limits)),
      new_(test_above(0, limits)) {}

void RateCheck::add(const Outcome& outcome) {
  all_.add(is_bad(outcome));
  new_.add(is_bad(outcome) && !own_.signatures.contains(outcome.signature));
}

TriedSetting::Verdict RateCheck::verdict() const {
  using Sequential = SequentialTest::Verdict;
  if (all_.verdict() == Sequential::high || new_.verdict() == Sequential::high)
    return TriedSetting::Verdict::fails;
  if (all_.verdict() == Sequential::low && new_.verdict() == Sequential::low)
    return TriedSetting::Verdict::holds;
  return TriedSetting::Verdict::undecided;
}

namespace {

constexpr int slowest = 3;  // times longer than any run so far: it will not end
constexpr size_t most_kept_events = 2'000'000;
constexpr size_t most_headlines = 20;

}  // namespace

void SettingCounts::add(const Outcome& outcome, const Setting& setting, LoadLevel load, bool is_own,
                        const std::vector<bool>& used) {
  if (is_own) add_own(outcome, load);
  Tally& tally = tallies_[{load, setting}];
  tally.failures.add(is_bad(outcome));
  tally.new_failures += is_bad(outcome) && !own_[load].signatures.contains(outcome.signature);
  if (!is_bad(outcome)) tally.passing_ms.push_back(to_ms(outcome.duration));
  tally.used.resize(used.size());
  for (size_t i = 0; i < used.size(); ++i) tally.used[i] += used[i];
}

void SettingCounts::add_own(const Outcome& outcome, LoadLevel load) {
  own_[load].add(outcome);
  if (!is_bad(outcome) || own_headlines_.size() >= most_headlines) return;
  if (!outcome.failures.empty())
    ++own_headlines_[headline(outcome.failures.front())];
  else if (outcome.kind == OutcomeKind::skipped)
    ++own_headlines_["the test was skipped"];
}

TriedSetting SettingCounts::described(const Key& key, const Tally& tally) {
  TriedSetting tried;
  tried.load = key.first;
  tried.values = key.second;
  tried.failures = tally.failures;
  tried.new_failures = tally.new_failures;
  tried.run_time = spread_of(tally.passing_ms);
  tried.verdict = tally.verdict;
  tried.refused_rate = tally.refused_rate;
  return tried;
}

const SettingCounts::Tally* SettingCounts::find(const Setting& setting, LoadLevel load) const {
  const auto found = tallies_.find({load, setting});
  return found == tallies_.end() ? nullptr : &found->second;
}

Count SettingCounts::failures(const Setting& setting, LoadLevel load) const {
  const Tally* tally = find(setting, load);
  return tally ? tally->failures : Count{};
}

TriedSetting SettingCounts::of(const Setting& setting, LoadLevel load) const {
  const Tally* tally = find(setting, load);
  return described({load, setting}, tally ? *tally : Tally{});
}

std::vector<TriedSetting> SettingCounts::all() const {
  std::vector<TriedSetting> all;
  for (const auto& [key, tally] : tallies_) all.push_back(described(key, tally));
  return all;
}

int SettingCounts::used(const Setting& setting, LoadLevel load, size_t value) const {
  const Tally* tally = find(setting, load);
  return tally && value < tally->used.size() ? tally->used[value] : 0;
}

void SettingCounts::judge(const Setting& setting, LoadLevel load, TriedSetting::Verdict verdict,
                          double refused_rate) {
  const auto found = tallies_.find({load, setting});
  if (found == tallies_.end()) return;  // no run of it was made
  found->second.verdict = verdict;
  found->second.refused_rate = refused_rate;
}

BalanceRuns::BalanceRuns(Executor& executor, std::shared_ptr<const Test> test, const Plan& plan,
                         const BalanceLimits& limits, EventStream& events)
    : runner_(executor, std::move(test), events, limits.budget), plan_(plan), limits_(limits) {
  runner_.teller().begin("balance");
}

void BalanceRuns::search(const std::vector<TimeValue>& values, bool with_system_calls) {
  values_ = values;
  if (with_system_calls) plan_.system_calls = true;
}

// How much longer a run takes when times are raised, if all of them run out.
Duration BalanceRuns::longer_by(const Setting& setting) const {
  Duration extra{};
  for (size_t i = 0; i < values_.size(); ++i)
    if (setting[i] > values_[i].most && values_[i].runs > 0)
      extra += (setting[i] - values_[i].most) *
               static_cast<int64_t>(1 + values_[i].visits / values_[i].runs);
  return extra;
}

// A machine that is made scarce makes the test slower by as much.
Duration BalanceRuns::timeout(const Conditions& conditions, Duration extra) const {
  if (longest_ == Duration::zero()) return limits_.timeout;
  const int share = 1 + conditions.competitors + (conditions.one_core ? 1 : 0);
  return std::min(limits_.timeout, (slowest * longest_ + limits_.time_offset) * share + extra);
}

bool BalanceRuns::has_run(const ExperimentResult& result) {
  if (has_started(result)) return true;
  runner_.fail(usage_error(result.process.error, to_string(runner_.test().id)));
  return false;
}

std::optional<ExperimentResult> BalanceRuns::look(const Plan& plan, TrialEnded::Purpose purpose) {
  if (over()) return std::nullopt;
  auto seen = runner_.run({plan, {}, ""}, purpose, {timeout({})});
  if (!seen || !has_run(seen->result)) return std::nullopt;
  if (seen->result.outcome.kind != OutcomeKind::timeout)
    longest_ = std::max(longest_, seen->result.outcome.duration);
  return std::move(seen->result);
}

bool BalanceRuns::run(const Setting& setting, LoadLevel load, int most) {
  return run(setting, load, most, [](const Outcome&) { return false; });
}

bool BalanceRuns::run(const Setting& setting, LoadLevel load, int most, const Enough& enough) {
  if (most <= 0) return true;
  const Conditions conditions = conditions_for(load, limits_.cores);
  const Trial trial{plan_with(plan_, values_, setting), conditions, ""};
  bool is_enough = false;
  const int started = runner_.run_series(
      trial, TrialEnded::Purpose::setting, timeout(conditions, longer_by(setting)),
      {most, load == LoadLevel::idle ? limits_.at_once : 1}, [&](const Observation& seen) {
        take(seen.result, setting, load);
        is_enough = enough(seen.result.outcome) || is_enough;
        return is_enough;
      });
  return is_enough || (started >= most && !over());
}

void BalanceRuns::take(const ExperimentResult& result, const Setting& setting, LoadLevel load) {
  if (!has_run(result)) return;
  counts_.add(result.outcome, setting, load, setting == own_setting(values_),
              used_in(result, setting));
  keep(result, setting, load);
}

// The changed values are the last interventions of the plan, in their order.
std::vector<bool> BalanceRuns::used_in(const ExperimentResult& result,
                                       const Setting& setting) const {
  std::vector<bool> used(setting.size());
  if (!result.trace) return used;
  size_t number = plan_.interventions.size();
  for (size_t i = 0; i < setting.size(); ++i) {
    if (!is_set(values_[i], setting[i])) continue;
    const auto& seen = result.trace->interventions;
    used[i] = number < seen.size() && seen[number].fired > 0;
    ++number;
  }
  return used;
}

void BalanceRuns::keep(const ExperimentResult& result, const Setting& setting, LoadLevel load) {
  if (!result.trace || kept_events_ >= most_kept_events) return;
  kept_events_ += result.trace->calls.size();
  kept_.push_back({result.trace, is_bad(result.outcome), load, setting});
}

void BalanceRuns::go_back_to(Mark mark) {
  counts_ = std::move(mark.counts);
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(mark.kept), kept_.end());
}

namespace {

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
