#include "search/reproduce/hunt.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/reproduce/trials.h"
#include "stats/comparison.h"
#include "trace/log_match.h"
#include "trace/same_line.h"
#include "util/base_name.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Purpose = TrialEnded::Purpose;

constexpr int group_of_runs = 5;
constexpr int most_confirming_runs = 40;
constexpr int most_base_runs = 20;
constexpr double significance = 0.05;
constexpr Duration most_added = 10min;  // to a time limit, by delays at places without end
constexpr int tries_until_fired = 3;

double rate_of(const Found& found) {
  return static_cast<double>(found.with_plan.hits) / std::max(found.with_plan.runs, 1);
}

}  // namespace

bool Wanted::matches(const Outcome& outcome) const {
  if (!outcome.failed()) return false;
  if (anything() || outcome.signature == signature) return true;
  if (!failure) return false;
  return std::ranges::any_of(outcome.failures, [&](const Failure& seen) {
    const bool same_line = failure->line > 0 && is_same_line(seen, *failure);
    const bool same_check = !failure->expression.empty() &&
                            seen.expression == failure->expression &&
                            base_name(seen.file) == base_name(failure->file);
    return same_line || same_check || tells_of(*failure, seen);
  });
}

Hunt::Hunt(Executor& executor, std::shared_ptr<const Test> test, const HuntOptions& options,
           EventStream& events)
    : executor_(executor),
      test_(std::move(test)),
      options_(options),
      events_(events),
      began_(executor.elapsed()) {}

Plan Hunt::base_plan() const {
  Plan plan;
  plan.id = "hunt";
  plan.agent = true;
  plan.groups_off = options_.groups_off;
  plan.extra_functions = options_.extra_functions;
  plan.system_calls = options_.system_calls;
  return plan;
}

// A wanted line is watched, so that the trace tells when it is reached in a run that passes.
Plan Hunt::profile_plan() const {
  Plan plan = base_plan();
  plan.events = plan.stacks = true;
  if (options_.wanted.failure && options_.wanted.failure->line > 0 && !line_is_unknown_) {
    Intervention watch;
    watch.action = Intervention::Action::watch;
    watch.site.file = base_name(options_.wanted.failure->file);
    watch.site.line = options_.wanted.failure->line;
    plan.interventions.push_back(watch);
  }
  return plan;
}

Duration Hunt::left() const {
  return options_.budget - elapsed();
}

std::optional<ExperimentResult> Hunt::run(const Trial& trial, Duration timeout, Purpose purpose) {
  Experiment experiment{test_, trial.plan, timeout};
  experiment.conditions = trial.conditions;
  auto result = executor_.run(experiment);
  if (!result) {
    error_ = result.error();
    return std::nullopt;
  }
  if (result->process.end == ProcessResult::End::cancelled) {
    stopped_ = true;
    return std::nullopt;
  }
  TrialEnded told;
  told.test = test_;
  told.purpose = purpose;
  told.strategy = strategy_;
  told.number = ++told_[purpose];
  told.why = trial.why;
  told.plan = trial.plan;
  told.conditions = trial.conditions;
  told.result = *result;
  told.hit = is_hit(*result);
  told.fired = has_fired(trial.plan, *result);
  events_.emit(std::move(told));
  return std::move(*result);
}

bool Hunt::prepare() {
  begin("profile");
  say("runs without delays, to see what the test does and how often it fails by itself");
  return profile_runs() && measure_base();
}

// A run that hangs says nothing of how long the test takes, so that another one is worth a part of
// what time is left.
bool Hunt::profile_runs() {
  const auto wanted = [&] { return std::max(options_.profile_runs, never_stops() ? 2 : 1); };
  while (static_cast<int>(profile_.runs.size()) < wanted()) {
    const Duration needed = 3 * profile_.longest + options_.time_offset;
    const Duration limit = std::min(options_.timeout, std::max(left() / 2, needed));
    auto result = run({profile_plan(), {}, ""}, limit, Purpose::profile);
    if (!result) return false;
    if (!has_started(*result)) {
      if (!profile_plan().interventions.empty()) {
        line_is_unknown_ = true;  // the failing line is not in this binary
        continue;
      }
      error_ = usage_error(result->process.error, to_string(test_->id));
      return false;
    }
    add(profile_, std::move(*result));
    if (profile_.runs.size() >= 2 && (never_stops() || left() < options_.budget * 4 / 5)) break;
  }
  return !profile_.runs.empty() && !always_skipped();
}

bool Hunt::never_stops() const {
  return std::ranges::all_of(profile_.runs, [](const ExperimentResult& run) {
    return run.outcome.kind == OutcomeKind::timeout;
  });
}

bool Hunt::always_skipped() const {
  return !profile_.runs.empty() &&
         std::ranges::all_of(profile_.runs, [](const ExperimentResult& run) {
           return run.outcome.kind == OutcomeKind::skipped;
         });
}

// Only a test that failed by itself is worth the runs that tell how often it does.
bool Hunt::measure_base() {
  if (profile_.failures() == 0) return true;
  always_fails_ = never_stops();
  if (always_fails_) return false;
  while (static_cast<int>(baseline_.size()) < most_base_runs) {
    if (baseline_.size() >= group_of_runs && left() < options_.budget * 9 / 10) break;
    if (!run_baseline()) return false;
  }
  const auto failed = [](const Outcome& outcome) { return outcome.failed(); };
  const auto failures = std::ranges::count_if(baseline_, failed);
  const auto runs = static_cast<long>(baseline_.size());
  if (failures == runs && profile_.failures() == static_cast<int>(profile_.runs.size())) {
    always_fails_ = true;
    return false;
  }
  const auto wanted = std::ranges::count_if(
      baseline_, [&](const Outcome& outcome) { return options_.wanted.matches(outcome); });
  inverted_ = 2 * wanted > runs;
  if (inverted_)
    say(
        fmt::format("it fails by itself in {} of {} runs: looking for the delay under which it "
                    "passes, which names the same pair of events",
                    wanted, runs));
  return true;
}

bool Hunt::run_baseline() {
  auto result = run({base_plan(), {}, "without delays"}, timeout_for({base_plan(), {}, ""}),
                    Purpose::baseline);
  if (!result) return false;
  ++coverage_.baseline_runs;
  baseline_.push_back(result->outcome);
  return true;
}

Duration Hunt::initial_delay() const {
  const Duration computed =
      std::clamp<Duration>(4 * profile_.longest, options_.delays.least * 2, 5s);
  return options_.initial_delay.value_or(computed);
}

void Hunt::begin(std::string strategy) {
  strategy_ = std::move(strategy);
}

void Hunt::say(const std::string& text) {
  events_.emit(SearchStep{strategy_, text});
}

bool Hunt::is_hit(const ExperimentResult& result) const {
  const Outcome& outcome = result.outcome;
  if (!has_started(result)) return false;
  if (inverted_) return outcome.kind == OutcomeKind::pass;
  if (!outcome.failed() || !shows_wanted(result)) return false;
  return !options_.wanted.anything() || !has_found(outcome.signature);
}

// A test's own macros print and abort in their own way: then the failing line is on the stack, or
// in what only failing runs print.
bool Hunt::shows_wanted(const ExperimentResult& result) const {
  const Wanted& wanted = options_.wanted;
  if (wanted.matches(result.outcome)) return true;
  if (!wanted.failure || wanted.failure->line == 0) return false;
  if (failed_at(result, *wanted.failure)) return true;
  const ExperimentResult* usual = profile_.model();
  return names_line(result.process.output.text(), *wanted.failure) &&
         !(usual != nullptr && names_line(usual->process.output.text(), *wanted.failure));
}

bool Hunt::has_found(const std::string& signature) const {
  return std::ranges::any_of(found_, [&](const Found& found) {
    return found.is_reliable() && found.outcome.signature == signature;
  });
}

uint64_t Hunt::visits_of(const Intervention& intervention) const {
  uint64_t visits = 0;
  for (const Place& place : profile_.places)
    if (is_for(intervention, place)) visits += place.visits;
  return std::max<uint64_t>(visits, 1);
}

// What the plan can add when every delay comes behind the other.
Duration Hunt::planned_delay(const Plan& plan) const {
  Duration sum{};
  for (const Intervention& intervention : plan.interventions) {
    if (!acts(intervention) || changes_time(intervention)) continue;
    const bool once = intervention.visits == Intervention::Visits::only_nth ||
                      intervention.position == Intervention::Position::start;
    if (intervention.visits == Intervention::Visits::halving)
      sum += 2 * intervention.duration;
    else
      sum += intervention.duration * (once ? 1 : std::min<uint64_t>(visits_of(intervention), 1000));
    if (sum >= most_added) return most_added;
  }
  return sum;
}

Duration Hunt::timeout_for(const Trial& trial) const {
  const double share = std::clamp(trial.conditions.cpu_share, 0.01, 1.0);
  const auto normal = std::chrono::duration_cast<Duration>(
      3 * profile_.longest * (1 + trial.conditions.competitors) / share);
  return std::min(options_.timeout, normal + planned_delay(trial.plan) + options_.time_offset);
}

void Hunt::count(const Trial& trial, const ExperimentResult& result, bool fired) {
  ++coverage_.search_runs;
  coverage_.plans_tried.insert(text_of(trial));
  if (!has_started(result)) {
    coverage_.refused.insert(result.process.error);
    return;
  }
  coverage_.fired_runs += fired && std::ranges::any_of(trial.plan.interventions, acts);
  coverage_.never_fired += !fired;
  for (const Intervention& intervention : trial.plan.interventions)
    coverage_.sites_tried.insert(site_text(intervention));
  if (result.trace)
    for (const TracedIntervention& state : result.trace->interventions)
      coverage_.delay_added += state.added;
  if (result.outcome.failed() && !shows_wanted(result))
    ++coverage_.other_failures[headline_of(result.outcome)];
}

// A run that fails before its delays began says nothing of them, and is made again; so is one that
// had no time left because it came to its delays more often than before.
std::optional<Observation> Hunt::observe(const Trial& trial) {
  Duration limit = timeout_for(trial);
  for (int i = 1; !over(); ++i) {
    auto result = run(trial, limit, Purpose::candidate);
    if (!result) return std::nullopt;
    if (i == 1 && was_cut_short(*result)) {
      limit = std::min(4 * limit, options_.timeout);
      continue;
    }
    Observation seen;
    seen.limit = limit;
    seen.fired = has_fired(trial.plan, *result);
    const bool hit = is_hit(*result);
    count(trial, *result, seen.fired);
    seen.hit = hit && seen.fired;
    seen.result = std::move(*result);
    if (!hit || seen.fired || i == tries_until_fired) return seen;
  }
  return std::nullopt;
}

std::optional<ExperimentResult> Hunt::look(const Plan& plan) {
  if (over()) return std::nullopt;
  return run({plan, {}, ""}, timeout_for({plan, {}, ""}), Purpose::look);
}

Count Hunt::baseline_for(const std::string& signature) const {
  Count count;
  for (const Outcome& outcome : baseline_) {
    ++count.runs;
    count.hits += inverted_ ? outcome.kind == OutcomeKind::pass : outcome.signature == signature;
  }
  return count;
}

bool Hunt::is_again(const Trial& trial, const Found& found, const ExperimentResult& result) const {
  if (!has_started(result) || !has_fired(trial.plan, result)) return false;
  if (inverted_) return result.outcome.kind == OutcomeKind::pass;
  return result.outcome.failed() && result.outcome.signature == found.outcome.signature;
}

// Looks at the counts after 5, 10, 20 ... runs share the error that is allowed, and so do the hits
// that are looked at: 1/2 + 1/6 + 1/12 ... is no more than 1. Looking more often does not make a
// lucky streak more likely to pass.
bool Hunt::confirm(const Trial& trial, const Observation& hit) {
  Found found;
  found.trial = trial;
  found.outcome = hit.result.outcome;
  found.strategy = strategy_;
  found.search_runs = coverage_.search_runs;
  found.elapsed = elapsed();
  found.candidates = std::max(1, static_cast<int>(coverage_.plans_tried.size()));
  found.passes_under_plan = inverted_;
  found.timeout = std::max(timeout_for(trial), hit.limit);
  if (is_slow_only(trial, found)) return false;
  const int doubts = coverage_.unconfirmed + static_cast<int>(found_.size()) + 1;
  const double allowed = significance / std::max(found.candidates, doubts * (doubts + 1));
  for (int look = 1; found.with_plan.runs < most_confirming_runs; ++look) {
    const int runs = std::max(group_of_runs, 2 * found.with_plan.runs);
    if (look > 1 && out_of_budget()) break;
    if (!confirm_until(runs, trial, found)) return false;
    if (found.with_plan.hits * 5 < found.with_plan.runs * 3) break;
    const double p = fisher_more_often(found.with_plan.hits, found.with_plan.runs,
                                       found.without_plan.hits, found.without_plan.runs);
    if (p <= allowed / (look * (look + 1))) {
      keep(std::move(found));
      return true;
    }
  }
  ++coverage_.unconfirmed;
  say(fmt::format("{}: {} of {} fresh runs with it, {} of {} without",
                  out_of_budget() ? "no time left to tell it from chance" : "did not hold",
                  found.with_plan.hits, found.with_plan.runs, found.without_plan.hits,
                  found.without_plan.runs));
  return false;
}

void Hunt::keep(Found found) {
  say(fmt::format("holds: {} of {} fresh runs with it, {} of {} without", found.with_plan.hits,
                  found.with_plan.runs, found.without_plan.hits, found.without_plan.runs));
  const auto failed = std::ranges::find_if(
      baseline_, [&](const Outcome& outcome) { return options_.wanted.matches(outcome); });
  if (inverted_ && failed != baseline_.end()) found.outcome = *failed;
  const auto weaker = std::ranges::find_if(found_, [&](const Found& other) {
    return other.outcome.signature == found.outcome.signature;
  });
  if (weaker == found_.end())
    found_.push_back(std::move(found));
  else if (rate_of(*weaker) < rate_of(found))
    *weaker = std::move(found);
}

bool Hunt::confirm_until(int runs, const Trial& trial, Found& found) {
  const auto has_time = [&](size_t done) { return done < group_of_runs || !out_of_budget(); };
  found.without_plan = baseline_for(found.outcome.signature);
  while (found.with_plan.runs < runs && has_time(static_cast<size_t>(found.with_plan.runs))) {
    auto result = run(trial, found.timeout, Purpose::confirm);
    if (!result) return false;
    ++coverage_.confirming_runs;
    ++found.with_plan.runs;
    found.with_plan.hits += is_again(trial, found, *result);
    const int lost = found.with_plan.runs - found.with_plan.hits;
    if (lost * 5 > runs * 2) return true;
  }
  while (static_cast<int>(baseline_.size()) < runs && has_time(baseline_.size()))
    if (!run_baseline()) return false;
  found.without_plan = baseline_for(found.outcome.signature);
  return true;
}

// A hang is only believed when it lasts.
bool Hunt::is_slow_only(const Trial& trial, const Found& found) {
  if (found.outcome.kind != OutcomeKind::timeout) return false;
  const auto result = run(trial, found.timeout * 3, Purpose::confirm);
  if (!result) return true;
  ++coverage_.confirming_runs;
  const bool is_slow =
      result->outcome.kind != OutcomeKind::timeout && result->outcome.duration > found.timeout;
  if (is_slow) say("did not hang: it ended by itself when it was given three times as long");
  return is_slow;
}

std::optional<bool> Hunt::measure(const Trial& trial, const Found& found) {
  if (stopped_ || error_ || left() + options_.budget / 2 <= Duration::zero()) return std::nullopt;
  const auto result = run(trial, found.timeout, Purpose::dose);
  if (!result) return std::nullopt;
  return is_again(trial, found, *result);
}

bool Hunt::over() const {
  if (stopped_ || error_ || always_fails_ || out_of_budget()) return true;
  if (!inverted_ && options_.wanted.anything()) return false;
  return std::ranges::any_of(found_, &Found::is_reliable) ||
         (!found_.empty() && elapsed() > found_.front().elapsed + options_.budget / 5);
}

}  // namespace unflake
