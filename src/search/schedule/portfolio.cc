#include "search/schedule/portfolio.h"

#include <algorithm>
#include <set>

namespace unflake {
namespace {

struct SeenObject {
  std::map<ThreadNumber, uint64_t> accesses;
  std::set<uint32_t> sites;
  std::set<ThreadNumber> writers;

  bool is_shared() const { return accesses.size() > 1 && !writers.empty(); }
};

// The published samplers that do best come first and most often; the other two find now and then
// what both miss.
constexpr Sampler usual_turns[] = {Sampler::surw, Sampler::pos,        Sampler::surw, Sampler::pos,
                                   Sampler::surw, Sampler::pos,        Sampler::pct,  Sampler::surw,
                                   Sampler::pos,  Sampler::random_walk};

constexpr int most_depth = 3;

// The clock of a controlled run goes on by a little at every decision; more than that are waits.
bool has_deadlines(const Trace& trace) {
  return trace.controlled->virtual_time >= std::chrono::milliseconds(1) || calls_with_times(trace);
}

std::map<uint64_t, SeenObject> objects_of(const std::vector<ThreadAccess>& accesses) {
  std::map<uint64_t, SeenObject> objects;
  for (const ThreadAccess& access : accesses) {
    if (access.object == no_object) continue;
    SeenObject& seen = objects[access.object];
    ++seen.accesses[access.thread];
    seen.sites.insert(access.site);
    if (access.writes) seen.writers.insert(access.thread);
  }
  return objects;
}

}  // namespace

bool calls_with_times(const Trace& trace) {
  constexpr std::string_view timed[] = {"timed", "clock", "sleep", "poll", "select", "epoll"};
  return std::ranges::any_of(trace.sites, [&](const TracedSite& site) {
    return std::ranges::any_of(timed, [&](std::string_view word) {
      return site.name.api.find(word) != std::string::npos;
    });
  });
}

ScheduleProfile profile_of(const Trace& trace) {
  const ControlledRun& run = *trace.controlled;
  const std::vector<ThreadAccess> accesses = executed_accesses(run);
  std::set<ThreadNumber> threads;
  for (const ThreadAccess& access : accesses) threads.insert(access.thread);
  const std::map<uint64_t, SeenObject> objects = objects_of(accesses);
  ScheduleProfile profile;
  profile.threads = threads.empty() ? 0 : *threads.rbegin() + 1;
  profile.length = run.points_in_all;
  profile.has_deadlines = has_deadlines(trace);
  std::map<std::set<uint32_t>, std::vector<size_t>> groups;
  for (const auto& [object, seen] : objects) {
    if (!seen.is_shared()) continue;
    groups[seen.sites].push_back(profile.shared.size());
    profile.shared.push_back({object, std::vector<uint64_t>(profile.threads)});
    for (const auto& [thread, count] : seen.accesses)
      profile.shared.back().accesses[thread] = count;
  }
  for (auto& [sites, members] : groups) profile.groups.push_back(std::move(members));
  return profile;
}

Portfolio::Portfolio(ScheduleProfile profile, ScheduleLevel level, std::vector<Sampler> samplers,
                     uint64_t seed)
    : profile_(std::move(profile)),
      level_(std::move(level)),
      turns_(std::move(samplers)),
      draws_(seed) {
  if (turns_.empty()) turns_.assign(std::begin(usual_turns), std::end(usual_turns));
}

Schedule Portfolio::next() {
  return next_by(turns_[turn_++ % turns_.size()]);
}

Schedule Portfolio::next_by(Sampler sampler) {
  Schedule schedule;
  schedule.sampler = sampler;
  schedule.seed = draws_();
  schedule.stall = level_.stall;
  schedule.accesses = level_.accesses;
  schedule.hot_accesses = level_.hot_accesses;
  schedule.length = profile_.length;
  if (sampler == Sampler::pct) schedule.depth = 1 + static_cast<int>(below(most_depth));
  if (sampler == Sampler::surw) select_for_surw(schedule);
  return schedule;
}

// Mostly one object, drawn anew for every run: the fewer accesses are selected, the more likely is
// each of their orders. What needs two objects is found with all of them.
void Portfolio::select_for_surw(Schedule& schedule) {
  schedule.remaining.assign(profile_.threads, 0);
  std::vector<size_t> chosen;
  if (!profile_.groups.empty() && below(4) != 0) {
    const auto& group = profile_.groups[below(profile_.groups.size())];
    chosen = {group[below(group.size())]};
  } else {
    for (size_t i = 0; i < profile_.shared.size(); ++i) chosen.push_back(i);
  }
  for (const size_t i : chosen) {
    const ScheduleProfile::SharedObject& object = profile_.shared[i];
    schedule.selected.push_back(object.object);
    for (size_t thread = 0; thread < object.accesses.size(); ++thread)
      schedule.remaining[thread] += object.accesses[thread];
  }
}

}  // namespace unflake
