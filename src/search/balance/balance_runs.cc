#include "search/balance/balance_runs.h"

#include <algorithm>

#include "model/outcome.h"
#include "search/reproduce/trials.h"

namespace unflake {
namespace {

constexpr int slowest = 3;  // times longer than any run so far: it will not end
constexpr size_t most_kept_events = 2'000'000;
constexpr size_t most_headlines = 20;

}  // namespace

BalanceRuns::BalanceRuns(Executor& executor, std::shared_ptr<const Test> test, const Plan& plan,
                         const BalanceLimits& limits, EventStream& events)
    : executor_(executor),
      test_(std::move(test)),
      plan_(plan),
      limits_(limits),
      events_(events),
      began_(executor.elapsed()) {}

void BalanceRuns::search(const std::vector<TimeValue>& values, bool with_system_calls) {
  values_ = values;
  if (with_system_calls) plan_.system_calls = true;
}

bool BalanceRuns::over() const {
  return stopped_ || error_ || out_of_budget();
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
Experiment BalanceRuns::experiment(const Plan& plan, const Conditions& conditions,
                                   Duration extra) const {
  Experiment experiment{test_, plan, limits_.timeout};
  experiment.conditions = conditions;
  const int share = 1 + conditions.competitors + (conditions.one_core ? 1 : 0);
  const Duration expected = (slowest * longest_ + limits_.time_offset) * share + extra;
  if (longest_ > Duration::zero()) experiment.timeout = std::min(limits_.timeout, expected);
  return experiment;
}

std::optional<ExperimentResult> BalanceRuns::next_finished() {
  while (running_ > 0) {
    Wakeup wakeup = executor_.wait();
    if (auto* finished = std::get_if<Finished>(&wakeup)) {
      --running_;
      if (stopped_ || finished->result.process.end == ProcessResult::End::cancelled) continue;
      return std::move(finished->result);
    }
    if (const auto* broken = std::get_if<Broken>(&wakeup)) {
      error_ = broken->error;
      return std::nullopt;
    }
    if (!std::holds_alternative<Stopped>(wakeup)) continue;
    stopped_ = true;
    executor_.cancel_all();
  }
  return std::nullopt;
}

bool BalanceRuns::start(const Experiment& experiment) {
  if (over() || executor_.free_slots() == 0) return false;
  executor_.start(experiment);
  ++running_;
  return true;
}

std::optional<ExperimentResult> BalanceRuns::look(const Plan& plan, TrialEnded::Purpose purpose) {
  if (!start(experiment(plan, {}))) return std::nullopt;
  auto result = next_finished();
  if (!result) return std::nullopt;
  ++made_;
  if (result->process.end == ProcessResult::End::not_started) {
    error_ = usage_error(result->process.error, to_string(test_->id));
    return std::nullopt;
  }
  if (result->outcome.kind != OutcomeKind::timeout)
    longest_ = std::max(longest_, result->outcome.duration);
  tell(plan, {}, *result, purpose);
  return result;
}

bool BalanceRuns::run(const Setting& setting, LoadLevel load, int most) {
  return run(setting, load, most, [](const Outcome&) { return false; });
}

bool BalanceRuns::run(const Setting& setting, LoadLevel load, int most, const Enough& enough) {
  const Plan plan = plan_with(plan_, values_, setting);
  const Conditions conditions = conditions_for(load, limits_.cores);
  const Experiment wanted = experiment(plan, conditions, longer_by(setting));
  const int at_once = load == LoadLevel::idle ? limits_.at_once : 1;
  int started = 0;
  bool done = most <= 0;
  while (true) {
    while (!done && started < most && running_ < at_once && start(wanted)) ++started;
    const auto result = next_finished();
    if (!result) break;
    take(*result, setting, load);
    tell(plan, conditions, *result, TrialEnded::Purpose::setting);
    done = done || enough(result->outcome);
  }
  return done || (started >= most && !over());
}

void BalanceRuns::take(const ExperimentResult& result, const Setting& setting, LoadLevel load) {
  const Outcome& outcome = result.outcome;
  ++made_;
  if (result.process.end == ProcessResult::End::not_started) {
    error_ = usage_error(result.process.error, to_string(test_->id));
    return;
  }
  if (setting == own_setting(values_)) note_own(outcome, load);
  Tally& tally = counts_.tallies[{load, setting}];
  ++tally.failures.runs;
  tally.failures.hits += is_bad(outcome);
  tally.new_failures +=
      is_bad(outcome) && !counts_.own[load].signatures.contains(outcome.signature);
  if (!is_bad(outcome)) tally.passing_ms.push_back(to_ms(outcome.duration));
  note_used(tally, result, setting);
  keep(result, setting, load);
}

void BalanceRuns::note_own(const Outcome& outcome, LoadLevel load) {
  counts_.own[load].add(outcome);
  if (!is_bad(outcome) || counts_.own_headlines.size() >= most_headlines) return;
  if (!outcome.failures.empty())
    ++counts_.own_headlines[headline(outcome.failures.front())];
  else if (outcome.kind == OutcomeKind::skipped)
    ++counts_.own_headlines["the test was skipped"];
}

// The changed values are the last interventions of the plan, in their order.
void BalanceRuns::note_used(Tally& tally, const ExperimentResult& result,
                            const Setting& setting) const {
  tally.used.resize(setting.size());
  if (!result.trace) return;
  size_t number = plan_.interventions.size();
  for (size_t i = 0; i < setting.size(); ++i) {
    if (!is_set(values_[i], setting[i])) continue;
    const auto& seen = result.trace->interventions;
    tally.used[i] += number < seen.size() && seen[number].fired > 0;
    ++number;
  }
}

void BalanceRuns::keep(const ExperimentResult& result, const Setting& setting, LoadLevel load) {
  if (!result.trace || kept_events_ >= most_kept_events) return;
  kept_events_ += result.trace->calls.size();
  kept_.push_back({result.trace, is_bad(result.outcome), load, setting});
  counts_.kept = kept_.size();
}

void BalanceRuns::go_back_to(Counts counts) {
  counts_ = std::move(counts);
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(counts_.kept), kept_.end());
}

void BalanceRuns::tell(const Plan& plan, const Conditions& conditions,
                       const ExperimentResult& result, TrialEnded::Purpose purpose) {
  TrialEnded told;
  told.test = test_;
  told.purpose = purpose;
  told.strategy = "balance";
  told.number = made_;
  told.plan = plan;
  told.conditions = conditions;
  told.result = result;
  told.hit = result.outcome.failed();
  told.fired = has_fired(plan, result);
  events_.emit(std::move(told));
}

void BalanceRuns::say(const std::string& text) {
  events_.emit(SearchStep{"balance", text});
}

TriedSetting BalanceRuns::described(const Key& key, const Tally& tally) const {
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

Count BalanceRuns::failures(const Setting& setting, LoadLevel load) const {
  const auto found = counts_.tallies.find({load, setting});
  return found == counts_.tallies.end() ? Count{} : found->second.failures;
}

TriedSetting BalanceRuns::counted(const Setting& setting, LoadLevel load) const {
  const Key key{load, setting};
  const auto found = counts_.tallies.find(key);
  return described(key, found == counts_.tallies.end() ? Tally{} : found->second);
}

std::vector<TriedSetting> BalanceRuns::all() const {
  std::vector<TriedSetting> all;
  for (const auto& [key, tally] : counts_.tallies) all.push_back(described(key, tally));
  return all;
}

int BalanceRuns::used(const Setting& setting, LoadLevel load, size_t value) const {
  const auto found = counts_.tallies.find({load, setting});
  return found == counts_.tallies.end() || value >= found->second.used.size()
             ? 0
             : found->second.used[value];
}

void BalanceRuns::judge(const Setting& setting, LoadLevel load, TriedSetting::Verdict verdict,
                        double refused_rate) {
  const auto found = counts_.tallies.find({load, setting});
  if (found == counts_.tallies.end()) return;  // no run of it was made
  found->second.verdict = verdict;
  found->second.refused_rate = refused_rate;
}

}  // namespace unflake
