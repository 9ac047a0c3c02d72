#include "search/reproduce/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "output/ci_log/ci_log.h"
#include "search/reproduce/trials.h"
#include "stats/comparison.h"
#include "util/paths.h"
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
constexpr int tries_until_it_comes = 3;
constexpr Duration least_limit = 1ms;   // of a run
constexpr Duration worth_a_probe = 2s;  // of the budget: asking the machine takes about one
constexpr double scarce_share = 0.5;    // of a processor, that a busy machine leaves a test

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
  plan.calls = plan.stacks = true;
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

// Whoever searches until the last moment has no time to confirm what it finds then.
Duration Hunt::reserve() const {
  return options_.budget / (found_.empty() ? 10 : 4);
}

// A run that comes to its delay once; what comes to it again and again is cut short in the end.
Duration Hunt::expected(const Trial& trial) const {
  const double share = std::clamp(trial.conditions.cpu_share, 0.01, 1.0);
  return std::chrono::duration_cast<Duration>(profile_.average / share) + longest_delay(trial.plan);
}

// With the runs without the plan that it is compared to.
Duration Hunt::to_confirm(const Trial& trial) const {
  const int plain = std::max(0, group_of_runs - static_cast<int>(baseline_.size()));
  return group_of_runs * expected(trial) + plain * profile_.average;
}

bool Hunt::is_affordable(const Trial& trial) const {
  const bool is_plain = trial.plan.interventions.empty() && trial.conditions == Conditions{};
  return is_plain || expected(trial) + to_confirm(trial) <= left();
}

// What its share of the budget cuts short has shown nothing, a hang least of all.
std::optional<ExperimentResult> Hunt::run(const Trial& trial, Duration timeout, Duration share,
                                          Purpose purpose) {
  const Duration limit = std::min(timeout, std::max(share, least_limit));
  Experiment experiment{test_, trial.plan, limit};
  experiment.conditions = trial.conditions;
  tell_announced();
  ++runs_;
  auto result = executor_.run(experiment);
  if (!result) {
    error_ = result.error();
    return std::nullopt;
  }
  if (result->process.end == ProcessResult::End::cancelled) {
    stopped_ = true;
    return std::nullopt;
  }
  if (limit < timeout && result->process.end == ProcessResult::End::timed_out) {
    if (purpose == Purpose::profile && cut_short() < result->outcome.duration)
      cut_short_ = std::move(*result);
    return std::nullopt;
  }
  tell(trial, *result, purpose);
  return std::move(*result);
}

void Hunt::tell(const Trial& trial, const ExperimentResult& result, Purpose purpose) {
  TrialEnded told;
  told.test = test_;
  told.purpose = purpose;
  told.strategy = strategy_;
  told.number = ++told_[purpose];
  told.why = trial.why;
  told.plan = trial.plan;
  told.conditions = trial.conditions;
  told.result = result;
  told.hit = is_hit(trial, result);
  told.wants_pass = inverted_;
  told.fired = has_fired(trial.plan, result);
  events_.emit(std::move(told));
}

bool Hunt::prepare() {
  begin("profile",
        "runs without delays, to see what the test does and how often it fails by itself");
  return profile_runs() && measure_base();
}

// After so long a run hangs, by all that is known of how long one takes.
Duration Hunt::needed_by_run() const {
  return 3 * profile_.longest + options_.time_offset;
}

// What the budget cut short is a hang after all when others take far less.
void Hunt::take_for_hang() {
  if (!cut_short_ || cut_short() < needed_by_run()) return;
  tell({profile_plan(), {}, ""}, *cut_short_, Purpose::profile);
  add(profile_, *std::exchange(cut_short_, std::nullopt));
}

// A run that hangs says nothing of how long the test takes, so that another one is worth a part of
// what time is left.
bool Hunt::profile_runs() {
  int tries = 0;
  const auto wanted = [&] { return std::max(options_.profile_runs, never_stops() ? 2 : 1); };
  while (static_cast<int>(profile_.runs.size()) < wanted()) {
    const bool is_known = profile_.longest > Duration::zero();
    const Duration limit = is_known ? std::max(left() / 2, needed_by_run()) : options_.timeout;
    auto result = run({profile_plan(), {}, ""}, std::min(options_.timeout, limit),
                      is_known ? left() : left() / 2, Purpose::profile);
    if (!result && !stopped_ && !error_ && !is_known && ++tries < 2) continue;
    if (!result) return never_stops() && !profile_.runs.empty() && !stopped_ && !error_;
    if (!has_started(*result)) {
      if (!profile_plan().interventions.empty()) {
        line_is_unknown_ = true;  // the failing line is not in this binary
        continue;
      }
      error_ = usage_error(result->process.error, to_string(test_->id));
      return false;
    }
    add(profile_, std::move(*result));
    if (profile_.longest > Duration::zero()) take_for_hang();
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

void Hunt::begin(std::string strategy, std::string about) {
  strategy_ = std::move(strategy);
  about_ = std::move(about);
  announced_.clear();
}

void Hunt::announce(std::string text) {
  announced_ = std::move(text);
}

void Hunt::tell_announced() {
  for (std::string* text : {&about_, &announced_})
    if (!text->empty()) events_.emit(SearchStep{strategy_, std::exchange(*text, "")});
}

void Hunt::say(const std::string& text) {
  tell_announced();
  events_.emit(SearchStep{strategy_, text});
}

bool Hunt::is_hit(const Trial& trial, const ExperimentResult& result) const {
  const Outcome& outcome = result.outcome;
  if (!has_started(result)) return false;
  if (inverted_) return outcome.kind == OutcomeKind::pass;
  if (!outcome.failed() || !shows_wanted(result)) return false;
  return !options_.wanted.anything() || !is_known(trial, outcome);
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

// To be late by seconds proves little, so that a plan under which the same failure takes less is
// still worth finding.
bool Hunt::is_known(const Trial& trial, const Outcome& outcome) const {
  const bool is_short = planned_delay(trial.plan) <= limits().overloaded;
  return std::ranges::any_of(found_, [&](const Found& found) {
    return found.is_reliable() && found.outcome.signature == outcome.signature &&
           !(is_short && is_long(found));
  });
}

Duration Hunt::lateness_of(const Found& found) const {
  return found.slack ? found.slack->fails : planned_delay(found.trial.plan);
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
  const bool has_delays = std::ranges::any_of(trial.plan.interventions, acts);
  coverage_.fired_runs += fired && has_delays;
  if ((has_delays || trial.conditions != Conditions{}) && fired) {
    ++coverage_.late.runs;
    coverage_.late.hits += shows_wanted(result);
  }
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
    if (!is_affordable(trial)) {
      ++coverage_.unaffordable;
      const Duration needed = expected(trial) + to_confirm(trial);
      coverage_.longest_unaffordable = std::max(coverage_.longest_unaffordable, needed);
      return Observation{};
    }
    auto result = run(trial, limit, Purpose::candidate);
    if (!result) return std::nullopt;
    if (i == 1 && was_cut_short(*result)) {
      limit = std::min(4 * limit, options_.timeout);
      continue;
    }
    Observation seen;
    seen.limit = limit;
    seen.fired = has_fired(trial.plan, *result);
    const bool hit = is_hit(trial, *result);
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
  const auto slow_only = is_slow_only(trial, found);
  if (!slow_only) give_up(std::move(found));
  if (slow_only.value_or(true)) return false;
  const int doubts = coverage_.unconfirmed + static_cast<int>(found_.size()) + 1;
  const double allowed = significance / std::max(found.candidates, doubts * (doubts + 1));
  for (int look = 1; found.with_plan.runs < most_confirming_runs; ++look) {
    const int runs = std::max(group_of_runs, 2 * found.with_plan.runs);
    if (!confirm_until(runs, trial, found)) return false;
    if (found.with_plan.hits * 5 < found.with_plan.runs * 3) break;
    const bool is_enough = std::min(found.with_plan.runs, found.without_plan.runs) >= group_of_runs;
    const double p = fisher_more_often(found.with_plan.hits, found.with_plan.runs,
                                       found.without_plan.hits, found.without_plan.runs);
    if (is_enough && p <= allowed / (look * (look + 1))) {
      keep(std::move(found));
      return true;
    }
    if (std::min(found.with_plan.runs, found.without_plan.runs) < runs) {
      give_up(std::move(found));
      return false;
    }
  }
  ++coverage_.unconfirmed;
  say(fmt::format("did not hold: {} of {} fresh runs with it, {} of {} without",
                  found.with_plan.hits, found.with_plan.runs, found.without_plan.hits,
                  found.without_plan.runs));
  return false;
}

void Hunt::give_up(Found found) {
  if (stopped_ || error_) return;
  say(fmt::format(
      "no time left to tell it from chance: {} of {} fresh runs with it, {} of {} without",
      found.with_plan.hits, found.with_plan.runs, found.without_plan.hits,
      found.without_plan.runs));
  coverage_.unfinished.push_back(std::move(found));
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
  else if (rate_of(*weaker) < rate_of(found) || is_long(*weaker))
    *weaker = std::move(found);
}

// False: stopped or broken. Fewer runs than asked for: the time has run out.
bool Hunt::confirm_until(int runs, const Trial& trial, Found& found) {
  found.without_plan = baseline_for(found.outcome.signature);
  while (found.with_plan.runs < runs && expected(trial) <= left()) {
    auto result = run(trial, found.timeout, Purpose::confirm);
    if (!result) return !stopped_ && !error_;
    ++coverage_.confirming_runs;
    ++found.with_plan.runs;
    found.with_plan.hits += is_again(trial, found, *result);
    const int lost = found.with_plan.runs - found.with_plan.hits;
    if (lost * 5 > runs * 2) return true;
  }
  while (static_cast<int>(baseline_.size()) < runs && profile_.average <= left())
    if (!run_baseline()) break;
  found.without_plan = baseline_for(found.outcome.signature);
  return !stopped_ && !error_;
}

// A hang is only believed when it lasts. Nothing: there was no time to see.
std::optional<bool> Hunt::is_slow_only(const Trial& trial, const Found& found) {
  if (found.outcome.kind != OutcomeKind::timeout) return false;
  const auto result = run(trial, found.timeout * 3, Purpose::confirm);
  if (!result) return std::nullopt;
  ++coverage_.confirming_runs;
  const bool is_slow =
      result->outcome.kind != OutcomeKind::timeout && result->outcome.duration > found.timeout;
  if (is_slow) say("did not hang: it ended by itself when it was given three times as long");
  return is_slow;
}

std::optional<bool> Hunt::measure(const Trial& trial, const Found& found) {
  const Duration time = std::min(left(), measuring_ends_ - elapsed());
  if (stopped_ || error_ || expected(trial) > time) return std::nullopt;
  const auto result = run(trial, found.timeout, Purpose::dose);
  if (!result) return std::nullopt;
  return is_again(trial, found, *result);
}

std::optional<Duration> Hunt::lateness_under(const Trial& trial, const Found& found) {
  Trial traced = trial;
  traced.plan.calls = true;
  for (int i = 0; i < tries_until_it_comes; ++i) {
    if (stopped_ || error_ || expected(trial) > left()) break;
    const auto result = run(traced, found.timeout, Purpose::dose);
    if (!result) break;
    if (is_again(trial, found, *result)) return lateness_in(*result);
  }
  return std::nullopt;
}

void Hunt::learn_machine_lateness() {
  if (std::exchange(asked_machine_, true) || !options_.measure_lateness) return;
  if (left() < worth_a_probe) return;
  machine_lateness_ = options_.measure_lateness();
}

void Hunt::judge(Found& found) {
  const std::string& signature = found.outcome.signature;
  const auto is_same = [&](const Outcome& outcome) {
    return outcome.failed() && outcome.signature == signature;
  };
  found.was_seen = inverted_ || !options_.wanted.anything() ||
                   options_.known_signatures.contains(signature) ||
                   std::ranges::any_of(baseline_, is_same) ||
                   std::ranges::any_of(profile_.runs, is_same, &ExperimentResult::outcome);
  found.machine_lateness = machine_lateness_;
  const bool is_scarce_only = found.trial.plan.interventions.empty();
  if (is_scarce_only && found.trial.conditions.cpu_share >= scarce_share)
    found.plausibility = Plausibility::flaw;
  else if (is_scarce_only)
    found.plausibility = Plausibility::risk;
  else if (!inverted_ && lateness_of(found) > Duration::zero())
    found.plausibility = plausibility_by_lateness(found);
}

// As long as no lateness is known that does no harm, a little may do as much as the plan.
std::optional<Plausibility> Hunt::plausibility_by_lateness(const Found& found) const {
  const Plausibility at_most = plausibility_of(lateness_of(found), limits());
  const bool is_measured = found.slack && found.slack->passes > Duration::zero();
  if (is_measured || at_most == Plausibility::flaw) return at_most;
  return std::nullopt;
}

LatenessEffect Hunt::lateness_effect() const {
  LatenessEffect effect;
  effect.late = coverage_.late;
  const auto add = [&](const Outcome& outcome) {
    ++effect.plain.runs;
    effect.plain.hits += options_.wanted.matches(outcome);
  };
  for (const ExperimentResult& run : profile_.runs) add(run.outcome);
  std::ranges::for_each(baseline_, add);
  effect.p =
      fisher_differs(effect.late.hits, effect.late.runs, effect.plain.hits, effect.plain.runs);
  return effect;
}

bool Hunt::has_flaw() const {
  return std::ranges::any_of(found_, [](const Found& found) { return !found.is_margin(); });
}

bool Hunt::over() const {
  if (stopped_ || error_ || always_fails_ || out_of_budget()) return true;
  if (!inverted_ && options_.wanted.anything()) return false;
  return std::ranges::any_of(found_, &Found::is_reliable) ||
         (!found_.empty() && elapsed() > found_.front().elapsed + options_.budget / 5);
}

}  // namespace unflake
