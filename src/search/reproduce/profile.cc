#include "search/reproduce/profile.h"

#include <algorithm>

#include "util/base_name.h"

namespace unflake {
namespace {

std::string executable_of(const Trace& trace, const TracedThread& thread) {
  if (thread.process >= trace.processes.size()) return "";
  const uint32_t image = trace.processes[thread.process].executable;
  return image < trace.images.size() ? std::string(base_name(trace.images[image].path)) : "";
}

// When each thread first came to each site.
std::map<std::pair<uint32_t, uint32_t>, Duration> first_visits(const Trace& trace) {
  std::map<std::pair<uint32_t, uint32_t>, Duration> first;
  for (const TracedEvent& event : trace.events)
    if (!event.is_intervention) first.try_emplace({event.thread, event.site}, event.enter);
  return first;
}

Place* find_place(Profile& profile, const SiteName& site, const ThreadName& thread,
                  const std::string& executable) {
  const auto found = std::ranges::find_if(profile.places, [&](const Place& place) {
    return place.site == site && place.thread.text == thread.text && place.executable == executable;
  });
  return found == profile.places.end() ? nullptr : &*found;
}

void add_places(Profile& profile, const Trace& trace) {
  const auto first = first_visits(trace);
  for (const TracedVisits& visits : trace.visits) {
    if (visits.thread >= trace.threads.size() || visits.site >= trace.sites.size()) continue;
    const TracedThread& thread = trace.threads[visits.thread];
    const TracedSite& site = trace.sites[visits.site];
    const std::string executable = executable_of(trace, thread);
    if (Place* known = find_place(profile, site.name, thread.name, executable)) {
      known->visits = std::max(known->visits, visits.visits);
      continue;
    }
    const auto when = first.find({visits.thread, visits.site});
    profile.places.push_back({site.name, thread.name, executable, site.group, visits.visits,
                              when == first.end() ? thread.started : when->second});
  }
  std::ranges::stable_sort(profile.places, {}, &Place::first);
}

}  // namespace

bool Place::is_thread_start() const {
  return site.api == "pthread_create" || site.api == "thrd_create";
}

int Profile::failures() const {
  return static_cast<int>(std::ranges::count_if(
      runs, [](const ExperimentResult& run) { return run.outcome.failed(); }));
}

int Profile::failures_with(const std::string& signature) const {
  return static_cast<int>(std::ranges::count_if(runs, [&](const ExperimentResult& run) {
    return run.outcome.failed() && run.outcome.signature == signature;
  }));
}

const ExperimentResult* Profile::model() const {
  const auto passed = std::ranges::find_if(
      runs, [](const ExperimentResult& run) { return !run.outcome.failed() && run.trace; });
  if (passed != runs.end()) return &*passed;
  return runs.empty() || !runs.front().trace ? nullptr : &runs.front();
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
