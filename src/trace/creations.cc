#include "trace/creations.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "trace/api_traits.h"
#include "util/base_name.h"

namespace unflake {
namespace {

struct Spawn {
  std::string place;  // as in thread names
  size_t ordinal = 0;
};

Spawn spawn_of(const ThreadName& name) {
  Spawn spawn{thread_class_of(name.text), 0};
  const size_t number = name.text.rfind('#');
  if (number != std::string::npos)
    std::from_chars(name.text.data() + number + 1, name.text.data() + name.text.size(),
                    spawn.ordinal);
  if (const size_t path = spawn.place.rfind('~'); path != std::string::npos)
    spawn.place.resize(path);
  return spawn;
}

std::string place_of(const TracedSite& site) {
  SiteName place = site.name;
  place.api.clear();
  place.nth = 1;
  return to_string(place);
}

bool begins_somebody(const TracedSite& site) {
  return makes_thread(site) || makes_process(site);
}

// A process that runs another program is not named after the place that started it.
void find_by_time(const Trace& trace, std::vector<size_t>& found) {
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TracedEvent& event = trace.events[i];
    if (event.site >= trace.sites.size() || !makes_process(trace.sites[event.site])) continue;
    for (size_t child = 0; child < trace.threads.size(); ++child) {
      const TracedThread& thread = trace.threads[child];
      if (thread.parent != event.thread || thread.started < event.enter) continue;
      if (thread.parent < trace.threads.size() &&
          trace.threads[thread.parent].process != thread.process &&
          thread.name.text.find('#') == std::string::npos)
        found[child] = i;
    }
  }
}

}  // namespace

std::vector<size_t> find_creations(const Trace& trace) {
  std::map<std::pair<uint32_t, std::string>, std::vector<size_t>> creations;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TracedEvent& event = trace.events[i];
    if (event.site < trace.sites.size() && begins_somebody(trace.sites[event.site]))
      creations[{event.thread, place_of(trace.sites[event.site])}].push_back(i);
  }
  std::vector<size_t> found(trace.threads.size(), no_event);
  std::map<std::pair<uint32_t, std::string>, std::vector<std::pair<size_t, size_t>>> children;
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    if (trace.threads[i].parent >= trace.threads.size()) continue;
    const Spawn spawn = spawn_of(trace.threads[i].name);
    children[{trace.threads[i].parent, spawn.place}].emplace_back(spawn.ordinal, i);
  }
  for (auto& [place, born] : children) {
    std::ranges::sort(born);
    const auto& made = creations[place];
    for (size_t i = 0; i < std::min(born.size(), made.size()); ++i) found[born[i].second] = made[i];
  }
  find_by_time(trace, found);
  return found;
}

std::string executable_of(const Trace& trace, const TracedThread& thread) {
  if (thread.process >= trace.processes.size()) return "";
  const uint32_t image = trace.processes[thread.process].executable;
  return image < trace.images.size() ? base_name(trace.images[image].path) : "";
}

}  // namespace unflake
