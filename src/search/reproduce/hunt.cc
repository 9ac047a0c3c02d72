#include "search/reproduce/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stats/rates.h"

namespace unflake {
namespace {

using Purpose = TrialEnded::Purpose;

constexpr int most_base_runs = 20;
constexpr int tries_until_fired = 3;
constexpr Duration time_for_a_sign = std::chrono::seconds(10);
// For a plan that does without control, once there is one that needs it.
constexpr Duration longest_for_free_run = std::chrono::seconds(5);

std::string counts_text(const Found& found) {
  return fmt::format("{} of {} fresh runs with it, {} of {} without", found.with_plan.hits,
                     found.with_plan.runs, found.without_plan.hits, found.without_plan.runs);
}

}  // namespace

void Coverage::count(const Trial& trial, const Observation& seen, bool shows_wanted) {
  ++search_runs;
  plans_tried.insert(text_of(trial));
  if (!has_started(seen.result)) {
    refused.insert(seen.result.process.error);
    return;
  }
  const bool has_delays = std::ranges::any_of(trial.plan.interventions, acts);
  fired_runs += seen.fired && has_delays;
  // What happens under control is no sample of what happens by itself.
  const bool is_free = !seen.result.trace || !seen.result.trace->controlled;
  if (is_free) free_plans.insert(text_of(trial));
  if (is_free && (has_delays || trial.conditions != Conditions{}) && seen.fired)
    late.add(shows_wanted);
  never_fired += !seen.fired;
  for (const Intervention& intervention : trial.plan.interventions)
    sites_tried.insert(site_text(intervention));
  if (is_free && seen.result.trace)
    for (const TracedIntervention& state : seen.result.trace->interventions)
      delay_added += state.added;
  if (seen.result.outcome.failed() && !shows_wanted)
    ++other_failures[headline_of(seen.result.outcome)];
}

Hunt::Hunt(Executor& executor, std::shared_ptr<const Test> test, const HuntOptions& options,
           EventStream& events)
    : options_(options),
      times_(profile_, options_),
      goal_(options.wanted, profile_),
      runner_(executor, std::move(test), events, options.budget),
      base_(runner_, unflake::base_plan(options_)),
      findings_(options_, goal_, profile_, base_),
      foresight_(runner_, goal_, times_),
      company_(runner_, base_, profile_, times_),
      patient_until_(options.patience) {
  const auto is_hit = [this](const Trial& trial, const ExperimentResult& result) {
    const bool is_known = !goal_.is_inverted() && goal_.wanted().anything() &&
                          findings_.has_already(trial, result.outcome);
    return goal_.is_reached(result) && !is_known;
  };
  runner_.aim_at({is_hit});
}

bool Hunt::prepare() {
  runner_.teller().begin(
      "profile", "runs without delays, to see what the test does and how often it fails by itself");
  return Profiling(runner_, options_, profile_)() && measure_base();
}

// Only a test that failed by itself is worth the runs that tell how often it does.
bool Hunt::measure_base() {
  if (profile_.failures() == 0) return true;
  profile_.always_fails = profile_.never_stops();
  if (profile_.always_fails) return false;
  while (base_.runs() < most_base_runs) {
    const bool is_enough = base_.runs() >= Confirmation::group_of_runs;
    if (is_enough && runner_.left() < options_.budget * 9 / 10) break;
    if (!base_.add({times_.limit_for(base_.plain()), runner_.left()})) return false;
  }
  const Count failed = base_.count([](const Outcome& outcome) { return outcome.failed(); });
  profile_.always_fails =
      failed.misses() == 0 && profile_.failures() == static_cast<int>(profile_.runs.size());
  if (profile_.always_fails) return false;
  const Count wanted =
      base_.count([&](const Outcome& outcome) { return goal_.wanted().matches(outcome); });
  if (2 * wanted.hits <= wanted.runs) return true;
  goal_.invert();
  runner_.aim_at(
      {[this](const Trial&, const ExperimentResult& result) { return goal_.is_reached(result); },
       true});
  runner_.teller().say(
      fmt::format("it fails by itself in {} of {} runs: looking for the delay under which it "
                  "passes, which names the same pair of events",
                  wanted.hits, wanted.runs));
  return true;
}

// Whoever searches until the last moment has no time to confirm what it finds then.
bool Hunt::out_of_budget() const {
  return runner_.left() <= options_.budget / (findings_.all().empty() ? 10 : 4);
}

void Hunt::take_sign() {
  const Duration now = runner_.elapsed();
  if (patient_until_ < now + time_for_a_sign) patient_until_ = now + time_for_a_sign;
}

Duration Hunt::time_to_search() const {
  if (!findings_.all().empty() || profile_.failures() > 0) return runner_.left();
  return std::min(runner_.left(), patient_until_ - runner_.elapsed());
}

bool Hunt::over() const {
  if (runner_.has_ended() || profile_.always_fails || out_of_budget()) return true;
  if (time_to_search() <= Duration::zero()) return was_impatient_ = true;
  if (!goal_.is_inverted() && goal_.wanted().anything() && !options_.any_is_enough) return false;
  const auto& found = findings_.all();
  if (found.empty()) return false;
  const Duration for_better = std::ranges::any_of(found, &Found::wants_delay)
                                  ? std::min<Duration>(options_.budget / 5, longest_for_free_run)
                                  : options_.budget / 5;
  return findings_.has_reliable() || runner_.elapsed() > found.front().elapsed + for_better;
}

// To confirm it takes the runs without the plan, too, that it is compared to.
bool Hunt::is_affordable(const Trial& trial) {
  if (trial.plan.interventions.empty() && trial.conditions == Conditions{}) return true;
  constexpr int group = Confirmation::group_of_runs;
  const Duration needed =
      (group + 1) * times_.expected(trial) + std::max(0, group - base_.runs()) * profile_.average;
  if (needed <= runner_.left()) return true;
  ++coverage_.unaffordable;
  coverage_.longest_unaffordable = std::max(coverage_.longest_unaffordable, needed);
  return false;
}

// A run that fails before its delays began says nothing of them, and is made again; so is one that
// had no time left because it came to its delays more often than before.
std::optional<Observation> Hunt::observe(const Trial& trial) {
  Duration limit = times_.limit_for(trial);
  for (int i = 1; !over(); ++i) {
    if (!is_affordable(trial)) return Observation{};
    auto seen = runner_.run(trial, Purpose::candidate, {limit, runner_.left()});
    if (!seen) return std::nullopt;
    if (i == 1 && ran_into_delays(seen->result)) {
      limit = std::min(4 * limit, options_.timeout);
      continue;
    }
    coverage_.count(trial, *seen, goal_.shows_wanted(seen->result));
    seen->limit = limit;
    const bool is_inconclusive = seen->hit && !seen->fired;
    seen->hit = seen->hit && seen->fired;
    if (seen->hit) take_sign();
    if (!is_inconclusive || i == tries_until_fired) return seen;
  }
  return std::nullopt;
}

std::optional<Observation> Hunt::foresee(const Trial& trial) {
  if (over() || !foresight_.is_possible(base_plan())) return std::nullopt;
  if (foresight_.is_refuted(trial.plan)) return Observation{};
  auto seen = foresight_.of(trial, Purpose::candidate);
  if (seen) coverage_.count(trial, *seen, goal_.shows_wanted(seen->result));
  if (seen && seen->hit) take_sign();
  return seen;
}

std::optional<ExperimentResult> Hunt::look(const Plan& plan) {
  if (over()) return std::nullopt;
  const Trial trial{plan, {}, ""};
  auto seen = runner_.run(trial, Purpose::look, {times_.limit_for(trial), runner_.left()});
  if (!seen) return std::nullopt;
  return std::move(seen->result);
}

namespace {

void give_up(Hunt& hunt, Found found) {
  if (hunt.runner().has_ended()) return;
  hunt.runner().teller().say("no time left to tell it from chance: " + counts_text(found));
  hunt.coverage().unfinished.push_back(std::move(found));
}

void keep(Hunt& hunt, Found found) {
  hunt.runner().teller().say("holds: " + counts_text(found));
  const auto& base = hunt.base_rate().outcomes();
  const auto failed = std::ranges::find_if(
      base, [&](const Outcome& outcome) { return hunt.goal().wanted().matches(outcome); });
  if (hunt.goal().is_inverted() && failed != base.end()) found.outcome = *failed;
  hunt.findings().keep(std::move(found));
}

}  // namespace

Confirmation::Runs Hunt::confirming(const Trial& trial, const Found& found) {
  Confirmation::Runs runs;
  runs.with_plan = [&, made = std::vector<ExperimentResult>{}]() mutable -> std::optional<bool> {
    if (made.empty()) made = company_.run(trial, Purpose::confirm, found.timeout);
    if (made.empty()) return std::nullopt;
    const bool is_again = goal_.is_again(trial, found.outcome.signature, made.back());
    made.pop_back();
    if (is_again) company_.try_with(trial);  // what never comes back is not worth a plain run
    return is_again;
  };
  runs.without_plan = [&](int wanted) {
    while (base_.runs() < wanted && profile_.average <= runner_.left())
      if (!base_.add({times_.limit_for(base_.plain()), runner_.left()})) break;
    return base_.count(
        [&](const Outcome& outcome) { return goal_.is_same(outcome, found.outcome.signature); });
  };
  runs.has_ended = [this] { return runner_.has_ended(); };
  return runs;
}

namespace {

constexpr int64_t most_at_once = 4;
constexpr int64_t cores = 2;
constexpr int64_t least_waiting = 3;  // times as long as all of them compute
constexpr Duration noise_in_company = std::chrono::milliseconds(10);

// How many runs that take this long can be made at once: more than one where they do little but
// wait.
int bearable_at_once(const Profile& profile, Duration run_time) {
  Duration computing(1);
  for (const ExperimentResult& run : profile.runs)
    computing = std::max(computing, run.process.user_cpu + run.process.system_cpu);
  return static_cast<int>(
      std::clamp<int64_t>(cores * run_time / (least_waiting * computing), 1, most_at_once));
}

}  // namespace

// Runs without the plan are needed anyway. When company shows in them, they say nothing, and the
// test is run alone from then on: it may have a port or a file of its own.
void Company::try_with(const Trial& trial) {
  if (was_tried_ || base_.runs() > 0 || profile_.failures() > 0 || trial.plan.schedule ||
      runner_.left() < runner_.budget().whole() / 2)
    return;
  const int at_once = bearable_at_once(profile_, times_.expected(trial));
  if (at_once < 2) return;
  was_tried_ = true;
  std::vector<Outcome> outcomes;
  Duration longest{};
  const int made = runner_.run_series(
      base_.plain(), TrialRunner::Purpose::baseline, times_.limit_for(base_.plain()),
      {Confirmation::group_of_runs, at_once}, [&](const Observation& seen) {
        outcomes.push_back(seen.result.outcome);
        longest = std::max(longest, seen.result.process.duration);
        return seen.result.outcome.failed();
      });
  const bool is_welcome = made == Confirmation::group_of_runs &&
                          outcomes.size() == static_cast<size_t>(made) &&
                          std::ranges::none_of(outcomes, &Outcome::failed) &&
                          longest <= profile_.longest * 5 / 4 + noise_in_company;
  if (!is_welcome) return;
  at_once_ = at_once;
  for (Outcome& outcome : outcomes) base_.add(std::move(outcome));
}

std::vector<ExperimentResult> Company::run(const Trial& trial, TrialEnded::Purpose purpose,
                                           Duration timeout) {
  std::vector<ExperimentResult> made;
  const int at_once = std::min(at_once_, bearable_at_once(profile_, times_.expected(trial)));
  if (at_once > 1 && runner_.left() > at_once * timeout) {
    runner_.run_series(trial, purpose, timeout, {at_once, at_once}, [&](const Observation& seen) {
      made.push_back(seen.result);
      return false;
    });
  } else if (times_.expected(trial) <= runner_.left()) {
    if (auto seen = runner_.run(trial, purpose, {timeout, runner_.left()}))
      made.push_back(std::move(seen->result));
  }
  return made;
}

// A hang is only believed when it lasts; else what counts is what the run came to at last. Nothing:
// there was no time to see.
std::optional<Observation> Hunt::seen_to_its_end(const Trial& trial, const Observation& hit) {
  if (hit.result.outcome.kind != OutcomeKind::timeout) return hit;
  const Duration limit = std::max(times_.limit_for(trial), hit.limit);
  auto seen = runner_.run(trial, Purpose::confirm, {3 * limit, runner_.left()});
  if (!seen) return std::nullopt;
  const Outcome& outcome = seen->result.outcome;
  if (outcome.kind == OutcomeKind::timeout || outcome.duration <= limit) return hit;
  runner_.teller().say("did not hang: it ended by itself when it was given three times as long");
  seen->hit = seen->hit && seen->fired;
  return seen;
}

bool Hunt::confirm(const Trial& tried, const Observation& first) {
  const auto seen = seen_to_its_end(tried, first);
  const Observation& hit = seen ? *seen : first;
  if (!hit.hit) return false;
  Trial trial = tried;
  if (first.result.outcome.kind == OutcomeKind::timeout &&
      hit.result.outcome.kind != OutcomeKind::timeout)
    trial.takes = hit.result.outcome.duration;
  Found found;
  found.trial = trial;
  found.outcome = hit.result.outcome;
  if (trial.plan.schedule) {
    found.digest = hit.result.trace->controlled->digest;
    found.not_repeatable = hit.result.trace->controlled->not_repeatable;
  }
  found.strategy = runner_.teller().strategy();
  found.search_runs = coverage_.search_runs;
  found.elapsed = runner_.elapsed();
  found.candidates = std::max(1, static_cast<int>(coverage_.plans_tried.size()));
  found.passes_under_plan = goal_.is_inverted();
  found.timeout = std::max(times_.limit_for(trial), hit.limit);
  if (!seen) {
    give_up(*this, std::move(found));
    return false;
  }
  // Runs under control come out the same every time: among those nothing was chosen by chance.
  const int chances = std::max(1, static_cast<int>(coverage_.free_plans.size()));
  Confirmation confirmation(chances, coverage_.unconfirmed + findings_.size());
  const Confirmation::Answer answer = confirmation(confirming(trial, found));
  found.with_plan = confirmation.with_plan();
  found.without_plan = confirmation.without_plan();
  if (answer == Confirmation::Answer::does_not) {
    ++coverage_.unconfirmed;
    runner_.teller().say("did not hold: " + counts_text(found));
  }
  if (answer == Confirmation::Answer::no_time) give_up(*this, std::move(found));
  if (answer != Confirmation::Answer::holds) return false;
  keep(*this, std::move(found));
  return true;
}

LatenessEffect lateness_effect(const Hunt& hunt) {
  LatenessEffect effect;
  effect.late = hunt.coverage().late;
  const auto is_wanted = [&](const Outcome& outcome) {
    return hunt.goal().wanted().matches(outcome);
  };
  for (const ExperimentResult& run : hunt.profile().runs) effect.plain.add(is_wanted(run.outcome));
  effect.plain += hunt.base_rate().count(is_wanted);
  effect.p = fisher_differs(effect.late, effect.plain);
  return effect;
}

}  // namespace unflake
