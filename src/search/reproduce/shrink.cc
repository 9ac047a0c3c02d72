#include "search/reproduce/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "stats/rates.h"

namespace unflake {
namespace {

using Numbers = std::vector<size_t>;

Numbers part_of(const Numbers& all, size_t part, size_t parts) {
  const auto at = [&](size_t i) {
    return all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / parts);
  };
  return {at(part), at(part + 1)};
}

Numbers without(const Numbers& all, const Numbers& some) {
  Numbers rest;
  std::ranges::set_difference(all, some, std::back_inserter(rest));
  return rest;
}

class Minimiser {
 public:
  explicit Minimiser(const StillFails& fails) : fails_(fails) {}

  Numbers operator()(Numbers current) {
    for (size_t parts = 2; current.size() > 1;) {
      if (auto part = failing_part(current, parts); !part.empty()) {
        current = std::move(part);
        parts = 2;
      } else if (auto rest = failing_rest(current, parts); !rest.empty()) {
        current = std::move(rest);
        parts = std::max<size_t>(parts - 1, 2);
      } else if (parts == current.size()) {
        break;
      } else {
        parts *= 2;
      }
      parts = std::min(parts, current.size());
    }
    return current;
  }

 private:
  bool fails(const Numbers& numbers) {
    const auto [known, is_new] = known_.try_emplace(numbers, false);
    if (is_new) known->second = fails_(numbers);
    return known->second;
  }

  Numbers failing_part(const Numbers& current, size_t parts) {
    for (size_t i = 0; i < parts; ++i)
      if (auto part = part_of(current, i, parts); fails(part)) return part;
    return {};
  }

  Numbers failing_rest(const Numbers& current, size_t parts) {
    for (size_t i = 0; i < parts; ++i)
      if (auto rest = without(current, part_of(current, i, parts)); fails(rest)) return rest;
    return {};
  }

  const StillFails& fails_;
  std::map<Numbers, bool> known_;
};

}  // namespace

std::vector<size_t> minimise(size_t n, const StillFails& fails) {
  std::vector<size_t> all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  return Minimiser(fails)(std::move(all));
}

namespace {

using namespace std::chrono_literals;

constexpr Duration least_delay = 1ms;
constexpr int most_of_what_is_left = 4;  // a run may take the fourth part of it

}  // namespace

int most_delays_in_a_thread(const std::vector<Place>& places) {
  // Halving adds up to less than two.
  std::map<std::string, int> delays;
  int most = 1;
  for (const Place& place : places)
    most = std::max(most, delays[place.thread.text] += place.visits > 1 ? 2 : 1);
  return most;
}

std::vector<Place> sleepy_places(const Profile& profile) {
  std::vector<Place> places;
  std::ranges::copy_if(profile.places, std::back_inserter(places),
                       [](const Place& place) { return !is_watched_line(place.site); });
  return places;
}

Trial delay_all(const Hunt& hunt, const std::vector<Place>& places, Duration delay,
                std::string why) {
  const Duration longest =
      std::min(hunt.runner().left() / most_of_what_is_left, hunt.options().timeout / 2);
  const Duration room = longest / most_delays_in_a_thread(places);
  Trial trial{hunt.base_plan(), {}, std::move(why)};
  for (const Place& place : places) {
    trial.plan.interventions.push_back(
        delay_at(place, std::max(std::min(delay, room), least_delay)));
    trial.plan.interventions.back().visits = Intervention::Visits::halving;
  }
  return trial;
}

namespace {

using namespace std::chrono_literals;
using Visits = Intervention::Visits;

constexpr int least_runs_to_keep = 5;  // that a smaller plan must all fail
constexpr int most_runs_to_keep = 20;
constexpr double chance_to_keep = 0.01;  // that a plan does which does nothing
constexpr int tries_until_it_comes = 3;
constexpr int most_steps = 14;
constexpr int most_runs_per_dose = 12;
constexpr Duration longest_measurement = 20s;
constexpr Duration finest = 1ms;
constexpr double finest_slack_ratio = 1.1;
constexpr double near_by = 1.15;
constexpr int runs_to_measure_waits = 5;

bool is_delay(const Intervention& intervention) {
  return intervention.action == Intervention::Action::delay;
}

// Runs of a failure that was found, under other plans than its own.
class Measuring {
 public:
  Measuring(Hunt& hunt, const Found& found, Duration until)
      : hunt_(hunt), found_(found), until_(until) {}

  // Whether it comes, in as many runs as are made at once; none when there is no time left.
  std::vector<bool> come(const Trial& trial) {
    std::vector<bool> all;
    if (hunt_.runner().elapsed() + hunt_.times().expected(trial) > until_) return all;
    for (const ExperimentResult& result :
         hunt_.company().run(trial, TrialEnded::Purpose::dose, found_.timeout))
      all.push_back(hunt_.goal().is_again(trial, found_.outcome.signature, result));
    return all;
  }

  // Whether it comes under control, too, where being late takes no time. Nothing: that does not
  // tell.
  std::optional<bool> foresee(const Trial& trial) {
    if (hunt_.runner().elapsed() > until_) return std::nullopt;
    const auto seen = hunt_.foresight().of(trial, TrialEnded::Purpose::dose);
    return seen ? std::optional(is_again(trial, *seen)) : std::nullopt;
  }

  // How late the plan makes the thread that it delays most until the failure comes, in a run in
  // which it does. Nothing when there is no time left.
  std::optional<Duration> lateness_under(const Trial& trial) {
    Trial traced = trial;
    traced.plan.calls = true;
    for (int i = 0; i < tries_until_it_comes; ++i) {
      const auto seen = run(traced, Duration::max());
      if (!seen) break;
      if (is_again(trial, *seen)) return lateness_in(seen->result);
    }
    return std::nullopt;
  }

  // Of any hold of the plan, in a run in which the failure comes.
  std::optional<Duration> longest_wait(const Trial& trial) {
    const auto seen = run(trial, until_);
    if (!seen || !is_again(trial, *seen)) return std::nullopt;
    Duration longest{};
    for (const TracedIntervention& state : seen->result.trace->interventions)
      longest = std::max(longest, state.added);
    return longest;
  }

 private:
  std::optional<Observation> run(const Trial& trial, Duration until) {
    TrialRunner& runner = hunt_.runner();
    const Duration time = std::min(runner.left(), until - runner.elapsed());
    if (runner.has_ended() || hunt_.times().expected(trial) > time) return std::nullopt;
    return runner.run(trial, TrialEnded::Purpose::dose, {found_.timeout, runner.left()});
  }

  bool is_again(const Trial& trial, const Observation& seen) const {
    return hunt_.goal().is_again(trial, found_.outcome.signature, seen.result);
  }

  Hunt& hunt_;
  const Found& found_;
  const Duration until_;
};

// What fails often by itself must fail more often in a row.
int runs_to_keep(const Count& plain) {
  int runs = least_runs_to_keep;
  const double rate = (plain.hits + 1.0) / (plain.runs + 2.0);
  while (std::pow(rate, runs) > chance_to_keep && runs < most_runs_to_keep) ++runs;
  return runs;
}

// Takes the smaller plan when the failure always comes with it, too.
bool keep_if_enough(Measuring& measuring, Found& found, const Trial& smaller) {
  if (measuring.foresee(found.trial).value_or(false) && measuring.foresee(smaller) == false)
    return false;
  const int runs = runs_to_keep(found.without_plan);
  for (int made = 0; made < runs;) {
    const std::vector<bool> came = measuring.come(smaller);
    if (came.empty() || std::ranges::count(came, false) > 0) return false;
    made += static_cast<int>(came.size());
  }
  found.trial = smaller;
  found.with_plan = {runs, runs};
  return true;
}

bool is_referred_to(const Plan& plan, size_t number) {
  return std::ranges::any_of(plan.interventions, [&](const Intervention& other) {
    return other.anchor == number || other.until == number;
  });
}

Plan without(const Plan& plan, size_t number) {
  Plan smaller = plan;
  smaller.interventions.erase(smaller.interventions.begin() + static_cast<std::ptrdiff_t>(number));
  for (Intervention& other : smaller.interventions)
    for (auto* reference : {&other.anchor, &other.until})
      if (*reference && **reference > number) --**reference;
  return smaller;
}

void drop_interventions(Measuring& measuring, Found& found) {
  for (size_t i = 0; i < found.trial.plan.interventions.size();) {
    const Plan& plan = found.trial.plan;
    const bool may_go = plan.interventions.size() > 1 && !is_referred_to(plan, i);
    Trial smaller = found.trial;
    if (may_go) smaller.plan = without(plan, i);
    if (!may_go || !keep_if_enough(measuring, found, smaller)) ++i;
  }
}

bool happens_often(const Hunt& hunt, const Intervention& delay) {
  return is_delay(delay) && delay.position != Intervention::Position::start &&
         delay.visits != Visits::only_nth && visits_of(hunt.profile(), delay) > 1;
}

// What all of its visits add up to.
Duration in_all(const Hunt& hunt, const Intervention& delay) {
  const auto visits =
      static_cast<int64_t>(std::min<uint64_t>(visits_of(hunt.profile(), delay), 1000));
  const int64_t times = delay.visits == Visits::halving ? 2 : visits;
  return std::min(delay.duration * times, std::max(hunt.options().delays.most, delay.duration));
}

// One late visit is easier to understand than many, and says how late is too late by itself.
void drop_visits(const Hunt& hunt, Measuring& measuring, Found& found) {
  for (size_t i = 0; i < found.trial.plan.interventions.size(); ++i) {
    const Intervention delay = found.trial.plan.interventions[i];
    if (!happens_often(hunt, delay) || delay.visits == Visits::from_nth) continue;
    for (const Duration alone : {delay.duration, in_all(hunt, delay)}) {
      Trial smaller = found.trial;
      smaller.plan.interventions[i].visits = Visits::only_nth;
      smaller.plan.interventions[i].nth = 1;
      smaller.plan.interventions[i].duration = alone;
      if (keep_if_enough(measuring, found, smaller)) break;
    }
  }
}

bool is_single_delay(const Hunt& hunt, const Plan& plan) {
  return std::ranges::count_if(plan.interventions, is_delay) == 1 &&
         std::ranges::none_of(plan.interventions,
                              [&](const Intervention& one) { return happens_often(hunt, one); });
}

// The doses that were measured, and the bracket around the slack.
class Titration {
 public:
  Titration(Hunt& hunt, Found& found, Duration until)
      : hunt_(hunt),
        found_(found),
        measuring_(hunt, found, until),
        fails_(longest_delay(found.trial.plan)) {}

  void operator()() {
    note(fails_, found_.with_plan);
    note(Duration::zero(), found_.without_plan);
    is_single_ = is_single_delay(hunt_, found_.trial.plan);
    measure_lateness();
    if (!found_.likely_slack) foresee_slack();
    began_ = hunt_.runner().elapsed();
    bool is_done = is_close();
    for (int step = 0; step < most_steps && !is_done; ++step) {
      if (!try_dose(next())) break;
      is_done = is_close();
    }
    if (!is_done) hunt_.runner().teller().say("no time was left to measure the slack more closely");
    measure_lateness();
    const double lateness = lateness_.value_or(at_most());
    found_.slack =
        Slack{lateness_ ? times(passes_, lateness) : Duration::zero(), times(fails_, lateness)};
    for (const auto& [delay, count] : doses_)
      found_.doses.push_back({times(delay, lateness), count});
  }

 private:
  void note(Duration delay, const Count& count) { doses_[delay] += count; }

  bool is_close() const {
    return fails_ <= passes_ + finest ||
           (passes_ > Duration::zero() && fails_ < passes_ * finest_slack_ratio);
  }

  static Duration times(Duration delay, double factor) {
    return Duration(std::llround(static_cast<double>(delay.count()) * factor));
  }

  // Several delays make a thread later than the longest of them does. How much later depends on
  // how long they are, so that it is measured again at the end, if there is time.
  void measure_lateness() {
    if (is_single_) lateness_ = 1;
    if (is_single_ || measured_at_ == fails_) return;
    const auto late = measuring_.lateness_under(with_dose(fails_));
    if (!late || *late == Duration::zero()) return;
    measured_at_ = fails_;
    lateness_ = static_cast<double>(late->count()) / static_cast<double>(fails_.count());
  }

  // When all delays come one after another.
  double at_most() const {
    Duration sum{};
    for (const Intervention& delay : found_.trial.plan.interventions)
      if (is_delay(delay))
        sum += happens_often(hunt_, delay) ? in_all(hunt_, delay) : delay.duration;
    return static_cast<double>(sum.count()) /
           static_cast<double>(longest_delay(found_.trial.plan).count());
  }

  // The same delays under control, where they take no time: what comes out is only a hint.
  void foresee_slack() {
    if (!measuring_.foresee(with_dose(fails_)).value_or(false)) return;
    Duration passes{}, fails = fails_;
    while (fails > passes * finest_slack_ratio && fails - passes > finest) {
      const Duration dose = passes + (fails - passes) / 2;
      const auto comes = measuring_.foresee(with_dose(dose));
      if (!comes) return;
      (*comes ? fails : passes) = dose;
    }
    found_.likely_slack = fails;
  }

  Trial with_dose(Duration delay) const {
    Trial trial = found_.trial;
    trial.plan = with_longest_delay(trial.plan, delay);
    return trial;
  }

  // What separates a flaw from a margin is worth more than another dose near it.
  Duration next() const {
    const Duration dose = next_by_size();
    const LatenessLimits limits = hunt_.findings().limits();
    for (const Duration limit : {limits.overloaded, limits.busy})
      if (passes_ < limit && limit < fails_ && dose < limit * near_by && limit < dose * near_by)
        return limit;
    return dose;
  }

  // Just above and just below what a schedule says.
  std::optional<Duration> next_by_schedule() const {
    if (!found_.likely_slack) return std::nullopt;
    const Duration above = times(*found_.likely_slack, 1.05);
    const Duration below = times(*found_.likely_slack, 0.97);
    if (passes_ < above && above < fails_) return above;
    if (passes_ < below && below < fails_) return below;
    return std::nullopt;
  }

  // Down in big steps at first: generous delays are far above the slack.
  Duration next_by_size() const {
    if (const auto dose = next_by_schedule()) return *dose;
    if (passes_ == Duration::zero()) return std::max<Duration>(fails_ / 4, finest / 2);
    const double ratio = static_cast<double>(fails_.count()) / static_cast<double>(passes_.count());
    return Duration(std::llround(static_cast<double>(passes_.count()) * std::sqrt(ratio)));
  }

  bool try_dose(Duration delay) {
    const Trial trial = with_dose(delay);
    SequentialTest test(0.3, 0.7, 0.05, most_runs_per_dose);
    while (test.verdict() == SequentialTest::Verdict::undecided) {
      const bool has_time = hunt_.runner().elapsed() - began_ < longest_measurement;
      const std::vector<bool> came = has_time ? measuring_.come(trial) : std::vector<bool>{};
      if (came.empty()) break;
      for (const bool one : came) test.add(one);
    }
    if (test.runs() > 0) note(delay, {test.hits(), test.runs()});
    if (test.verdict() == SequentialTest::Verdict::undecided) return false;
    (test.verdict() == SequentialTest::Verdict::high ? fails_ : passes_) = delay;
    return true;
  }

  Hunt& hunt_;
  Found& found_;
  Measuring measuring_;
  Duration began_{};
  Duration passes_{}, fails_;
  bool is_single_ = false;
  std::optional<double> lateness_;  // in all, for each second of the longest delay
  Duration measured_at_{};
  std::map<Duration, Count> doses_;
};

}  // namespace

Plan with_longest_delay(const Plan& plan, Duration longest) {
  const auto before = static_cast<double>(longest_delay(plan).count());
  Plan scaled = plan;
  for (Intervention& intervention : scaled.interventions)
    if (is_delay(intervention) && before > 0)
      intervention.duration =
          Duration(std::llround(static_cast<double>(intervention.duration.count()) *
                                static_cast<double>(longest.count()) / before));
  return scaled;
}

void shrink(Hunt& hunt, Found& found, Duration until) {
  Measuring measuring(hunt, found, until);
  drop_interventions(measuring, found);
  drop_visits(hunt, measuring, found);
}

namespace {

bool holds(const Intervention& intervention) {
  return intervention.action == Intervention::Action::hold;
}

// How long threads were held in a run in which the failure came: so late they have to be for the
// order to come by itself. The median of a few runs.
void measure_waits(Hunt& hunt, Found& found, Duration until) {
  Measuring measuring(hunt, found, until);
  std::vector<Duration> waits;
  for (int i = 0; i < runs_to_measure_waits; ++i)
    if (const auto waited = measuring.longest_wait(found.trial)) waits.push_back(*waited);
  if (waits.empty()) return;
  std::ranges::sort(waits);
  found.slack = Slack{Duration::zero(), std::max<Duration>(waits[waits.size() / 2], finest / 1000)};
}

}  // namespace

void measure_slack(Hunt& hunt, Found& found, Duration until) {
  if (longest_delay(found.trial.plan) > Duration::zero())
    Titration(hunt, found, until)();
  else if (std::ranges::any_of(found.trial.plan.interventions, holds))
    measure_waits(hunt, found, until);
}

}  // namespace unflake
