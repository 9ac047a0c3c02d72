#include "search/reproduce/profile.h"

#include <algorithm>
#include <tuple>

#include "trace/happens_before.h"

namespace unflake {
namespace {

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

}  // namespace

bool is_watched_line(const SiteName& site) {
  return site.api.empty() && site.line > 0;
}

int Profile::failures() const {
  return static_cast<int>(std::ranges::count_if(
      runs, [](const ExperimentResult& run) { return run.outcome.failed(); }));
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

}  // namespace unflake
