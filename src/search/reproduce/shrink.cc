#include "search/reproduce/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stats/sequential.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Visits = Intervention::Visits;

constexpr int runs_to_keep = 5;  // that a smaller plan must all fail
constexpr int most_steps = 14;
constexpr int most_runs_per_dose = 12;
constexpr Duration longest_measurement = 20s;
constexpr Duration finest = 1ms;
constexpr double finest_ratio = 1.1;

bool is_delay(const Intervention& intervention) {
  return intervention.action == Intervention::Action::delay;
}

bool always_comes(Hunt& hunt, const Trial& trial, const Found& found) {
  for (int i = 0; i < runs_to_keep; ++i)
    if (!hunt.measure(trial, found).value_or(false)) return false;
  return true;
}

bool is_referred_to(const Plan& plan, size_t number) {
  return std::ranges::any_of(plan.interventions, [&](const Intervention& other) {
    return other.anchor == number || other.until == number;
  });
}

void drop_interventions(Hunt& hunt, Found& found) {
  for (size_t i = 0; i < found.trial.plan.interventions.size();) {
    auto& all = found.trial.plan.interventions;
    if (all.size() < 2 || is_referred_to(found.trial.plan, i)) {
      ++i;
      continue;
    }
    Trial smaller = found.trial;
    smaller.plan.interventions.erase(smaller.plan.interventions.begin() +
                                     static_cast<std::ptrdiff_t>(i));
    if (always_comes(hunt, smaller, found))
      found.trial = smaller;
    else
      ++i;
  }
}

// One late visit is easier to understand than many.
void drop_visits(Hunt& hunt, Found& found) {
  for (Intervention& delay : found.trial.plan.interventions) {
    const bool is_many = is_delay(delay) && delay.position != Intervention::Position::start &&
                         (delay.visits == Visits::every || delay.visits == Visits::halving);
    if (!is_many || hunt.visits_of(delay) < 2) continue;
    const Intervention before = delay;
    delay.visits = Visits::only_nth;
    delay.nth = 1;
    if (!always_comes(hunt, found.trial, found)) delay = before;
  }
}

// The doses that were measured, and the bracket around the slack.
class Titration {
 public:
  Titration(Hunt& hunt, Found& found)
      : hunt_(hunt),
        found_(found),
        began_(hunt.elapsed()),
        fails_(longest_delay(found.trial.plan)) {}

  void operator()() {
    note(fails_, found_.with_plan);
    note(Duration::zero(), found_.without_plan);
    for (int step = 0; step < most_steps && fails_ > passes_ + finest; ++step) {
      if (passes_ > Duration::zero() && fails_ < passes_ * finest_ratio) break;
      if (!try_dose(next())) break;
    }
    found_.slack = Slack{passes_, fails_};
    for (const auto& [delay, count] : doses_) found_.doses.push_back({delay, count});
  }

 private:
  void note(Duration delay, const Count& count) {
    doses_[delay].hits += count.hits;
    doses_[delay].runs += count.runs;
  }

  // Down in big steps at first: generous delays are far above the slack.
  Duration next() const {
    if (passes_ == Duration::zero()) return std::max<Duration>(fails_ / 4, finest / 2);
    const double ratio = static_cast<double>(fails_.count()) / static_cast<double>(passes_.count());
    return Duration(std::llround(static_cast<double>(passes_.count()) * std::sqrt(ratio)));
  }

  bool try_dose(Duration delay) {
    Trial trial = found_.trial;
    trial.plan = with_longest_delay(trial.plan, delay);
    SequentialTest test(0.3, 0.7, 0.05, most_runs_per_dose);
    while (test.verdict() == SequentialTest::Verdict::undecided) {
      const bool has_time = hunt_.elapsed() - began_ < longest_measurement;
      const auto comes = has_time ? hunt_.measure(trial, found_) : std::nullopt;
      if (!comes) return false;
      test.add(*comes);
    }
    note(delay, {test.hits(), test.runs()});
    (test.verdict() == SequentialTest::Verdict::high ? fails_ : passes_) = delay;
    return true;
  }

  Hunt& hunt_;
  Found& found_;
  const Duration began_;
  Duration passes_{}, fails_;
  std::map<Duration, Count> doses_;
};

}  // namespace

Duration longest_delay(const Plan& plan) {
  Duration longest{};
  for (const Intervention& intervention : plan.interventions)
    if (is_delay(intervention)) longest = std::max(longest, intervention.duration);
  return longest;
}

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

void shrink(Hunt& hunt, Found& found) {
  drop_interventions(hunt, found);
  drop_visits(hunt, found);
}

void measure_slack(Hunt& hunt, Found& found) {
  if (longest_delay(found.trial.plan) > Duration::zero()) Titration(hunt, found)();
}

}  // namespace unflake
