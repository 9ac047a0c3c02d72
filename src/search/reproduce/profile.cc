#include "search/reproduce/profile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "trace/happens_before.h"
#include "util/paths.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration most_added = 10min;  // to a time limit, by delays at places without end

// When each thread first came to each site.
std::map<std::pair<uint32_t, uint32_t>, Duration> first_visits(const Trace& trace) {
  std::map<std::pair<uint32_t, uint32_t>, Duration> first;
  for (const TracedCall& call : trace.calls)
    if (!call.is_intervention) first.try_emplace({call.thread, call.site}, call.enter);
  return first;
}

using PlaceKey = std::tuple<SiteName, std::string, std::string>;

std::map<PlaceKey, size_t> known_places(const Profile& profile) {
  std::map<PlaceKey, size_t> known;
  for (size_t i = 0; i < profile.places.size(); ++i) {
    const Place& place = profile.places[i];
    known.try_emplace({place.site, place.thread.text, place.executable}, i);
  }
  return known;
}

void add_places(Profile& profile, const Trace& trace) {
  const auto first = first_visits(trace);
  auto places = known_places(profile);
  for (const TracedVisits& visits : trace.visits) {
    if (visits.thread >= trace.threads.size() || visits.site >= trace.sites.size()) continue;
    const TracedThread& thread = trace.threads[visits.thread];
    const TracedSite& site = trace.sites[visits.site];
    const std::string executable = executable_of(trace, thread);
    const auto [known, is_new] =
        places.try_emplace({site.name, thread.name.text, executable}, profile.places.size());
    if (!is_new) {
      uint64_t& most = profile.places[known->second].visits;
      most = std::max(most, visits.visits);
      continue;
    }
    const auto when = first.find({visits.thread, visits.site});
    profile.places.push_back({site.name, thread.name, executable, site.group, visits.visits,
                              when == first.end() ? thread.started : when->second});
  }
  std::ranges::stable_sort(profile.places, {}, &Place::first);
}

bool is_for(const Intervention& intervention, const Place& place) {
  using Threads = Intervention::Threads;
  const ThreadName& wanted = intervention.thread;
  return place.site == intervention.site &&
         (intervention.executable.empty() || intervention.executable == place.executable) &&
         (intervention.threads != Threads::named || wanted.text == place.thread.text) &&
         (intervention.threads != Threads::in_class ||
          wanted.thread_class == place.thread.thread_class);
}

}  // namespace

bool is_watched_line(const SiteName& site) {
  return site.api.empty() && site.line > 0;
}

int Profile::failures() const {
  return static_cast<int>(std::ranges::count_if(
      runs, [](const ExperimentResult& run) { return run.outcome.failed(); }));
}

bool Profile::never_stops() const {
  return std::ranges::all_of(
      runs, [](const ExperimentResult& run) { return run.outcome.kind == OutcomeKind::timeout; });
}

bool Profile::is_always_skipped() const {
  return !runs.empty() && std::ranges::all_of(runs, [](const ExperimentResult& run) {
    return run.outcome.kind == OutcomeKind::skipped;
  });
}

const ExperimentResult* Profile::model() const {
  const auto first = [&](auto is_wanted) {
    const auto found = std::ranges::find_if(
        runs, [&](const ExperimentResult& run) { return run.trace && is_wanted(run.outcome); });
    return found == runs.end() ? nullptr : &*found;
  };
  using Kind = OutcomeKind;
  if (const auto* run = first([](const Outcome& seen) { return seen.kind == Kind::pass; }))
    return run;
  if (const auto* run = first([](const Outcome& seen) { return seen.kind != Kind::timeout; }))
    return run;
  return first([](const Outcome&) { return true; });
}

void add(Profile& profile, ExperimentResult result) {
  if (result.trace) add_places(profile, *result.trace);
  profile.runs.push_back(std::move(result));
  Duration sum{};
  int finished = 0;
  for (const ExperimentResult& run : profile.runs) {
    if (run.outcome.kind == OutcomeKind::timeout) continue;
    sum += run.outcome.duration;
    profile.longest = std::max(profile.longest, run.outcome.duration);
    ++finished;
  }
  if (finished > 0) profile.average = sum / finished;
}

Intervention delay_at(const Place& place, Duration duration, Intervention::Position position) {
  Intervention delay;
  delay.site = place.site;
  delay.position = position;
  delay.threads = Intervention::Threads::named;
  delay.thread = place.thread;
  delay.executable = place.executable;
  delay.duration = duration;
  return delay;
}

uint64_t visits_of(const Profile& profile, const Intervention& intervention) {
  uint64_t visits = 0;
  for (const Place& place : profile.places)
    if (is_for(intervention, place)) visits += place.visits;
  return std::max<uint64_t>(visits, 1);
}

namespace {

double share_of(const Trial& trial) {
  return std::clamp(trial.conditions.cpu_share, 0.01, 1.0);
}

}  // namespace

Duration TrialTimes::expected(const Trial& trial) const {
  return std::max(trial.takes,
                  std::chrono::duration_cast<Duration>(profile_.average / share_of(trial)) +
                      longest_delay(trial.plan));
}

Duration TrialTimes::added_by(const Plan& plan) const {
  Duration sum{};
  for (const Intervention& intervention : plan.interventions) {
    if (!acts(intervention) || changes_time(intervention)) continue;
    const bool once = intervention.visits == Intervention::Visits::only_nth ||
                      intervention.position == Intervention::Position::start;
    const uint64_t visits = once ? 1 : std::min<uint64_t>(visits_of(profile_, intervention), 1000);
    const bool is_halving = intervention.visits == Intervention::Visits::halving;
    sum += intervention.duration * (is_halving ? 2 : visits);
    if (sum >= most_added) return most_added;
  }
  return sum;
}

Duration TrialTimes::limit_for(const Trial& trial) const {
  const auto normal = std::chrono::duration_cast<Duration>(
      3 * profile_.longest * (1 + trial.conditions.competitors) / share_of(trial));
  const Duration known = normal + added_by(trial.plan) + options_.time_offset;
  return std::min(options_.timeout, std::max(known, normal + 2 * trial.takes));
}

Duration TrialTimes::until_it_hangs() const {
  return 3 * profile_.longest + options_.time_offset;
}

Duration TrialTimes::initial_delay() const {
  const Duration computed =
      std::clamp<Duration>(4 * profile_.longest, options_.delays.least * 2, 5s);
  return options_.initial_delay.value_or(computed);
}

// A wanted line is watched, so that the trace tells when it is reached in a run that passes.
Plan Profiling::plan() const {
  Plan plan = base_plan(options_);
  plan.calls = plan.stacks = true;
  const auto& failure = options_.wanted.failure;
  if (!failure || failure->line <= 0 || line_is_unknown_) return plan;
  Intervention watch;
  watch.action = Intervention::Action::watch;
  watch.site.file = base_name(failure->file);
  watch.site.line = failure->line;
  plan.interventions.push_back(watch);
  return plan;
}

bool Profiling::is_wanted() const {
  const int wanted = std::max(options_.profile_runs, profile_.never_stops() ? 2 : 1);
  return static_cast<int>(profile_.runs.size()) < wanted;
}

bool Profiling::is_enough() const {
  return profile_.runs.size() >= 2 && runner_.left() < options_.budget * 4 / 5;
}

// A run that hangs says nothing of how long the test takes, so that another one is worth a part of
// what time is left.
std::optional<Observation> Profiling::run() {
  const bool is_known = profile_.longest > Duration::zero();
  const Duration limit =
      is_known ? std::max(runner_.left() / 2, times_.until_it_hangs()) : options_.timeout;
  auto seen = runner_.run(
      {plan(), {}, ""}, TrialEnded::Purpose::profile,
      {std::min(options_.timeout, limit), is_known ? runner_.left() : runner_.left() / 2});
  const auto& cut_short = runner_.cut_short();
  if (cut_short && cut_short->outcome.duration > profile_.cut_short) {
    cut_short_ = cut_short;
    profile_.cut_short = cut_short->outcome.duration;
  }
  if (!seen && !runner_.has_ended() && !is_known && ++cut_short_in_vain_ < 2) return run();
  return seen;
}

// What the budget cut short is a hang after all when others take far less.
void Profiling::take_for_hang() {
  if (!cut_short_ || profile_.cut_short < times_.until_it_hangs()) return;
  profile_.cut_short = Duration::zero();
  runner_.believe({plan(), {}, ""}, TrialEnded::Purpose::profile, *cut_short_);
  add(profile_, *std::exchange(cut_short_, std::nullopt));
}

// Without its failing line, which may not be in this binary, the program may still be run.
bool Profiling::take_refused(const ExperimentResult& result) {
  if (plan().interventions.empty()) {
    runner_.fail(usage_error(result.process.error, to_string(runner_.test().id)));
    return false;
  }
  return line_is_unknown_ = true;
}

bool Profiling::operator()() {
  while (is_wanted()) {
    auto seen = run();
    if (!seen) return profile_.never_stops() && !profile_.runs.empty() && !runner_.has_ended();
    if (!has_started(seen->result)) {
      if (!take_refused(seen->result)) return false;
      continue;
    }
    add(profile_, std::move(seen->result));
    if (profile_.longest > Duration::zero()) take_for_hang();
    if (is_enough()) break;
  }
  return !profile_.runs.empty() && !profile_.is_always_skipped();
}

}  // namespace unflake
