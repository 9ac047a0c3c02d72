#include "explain/lock_graph.h"

#include <algorithm>
#include <map>

namespace unflake {
namespace {

class LockGraph {
 public:
  explicit LockGraph(const Trace& trace) : trace_(trace) {}

  StuckLocks operator()() {
    std::vector<const TracedEvent*> events;
    for (const TracedEvent& event : trace_.events)
      if (!event.is_intervention && group_of(event) == "lock") events.push_back(&event);
    std::ranges::stable_sort(events, {}, [](const TracedEvent* event) { return event->exit; });
    for (const TracedEvent* event : events) follow(*event);
    for (StuckLocks::Wait& wait : stuck_.waits) wait.holder = holder_of(wanted_[wait.thread]);
    find_cycle();
    return std::move(stuck_);
  }

 private:
  using Lock = std::pair<uint32_t, uint64_t>;  // process and address

  std::string_view group_of(const TracedEvent& event) const {
    return event.site < trace_.sites.size() ? std::string_view(trace_.sites[event.site].group)
                                            : std::string_view();
  }

  Lock lock_of(const TracedEvent& event) const {
    const bool known = event.thread < trace_.threads.size();
    return {known ? trace_.threads[event.thread].process : no_index, event.object};
  }

  // Of a lock for several readers only the last one is remembered.
  void follow(const TracedEvent& event) {
    const std::string& api = trace_.sites[event.site].name.api;
    if (event.unfinished) {
      stuck_.waits.push_back({event.thread, event.site, no_index});
      wanted_[event.thread] = lock_of(event);
    } else if (api.find("unlock") != std::string::npos) {
      holders_.erase(lock_of(event));
    } else if (event.result == 0) {
      holders_[lock_of(event)] = event.thread;
    }
  }

  uint32_t holder_of(const Lock& lock) const {
    const auto found = holders_.find(lock);
    return found == holders_.end() ? no_index : found->second;
  }

  const StuckLocks::Wait* wait_of(uint32_t thread) const {
    const auto found = std::ranges::find(stuck_.waits, thread, &StuckLocks::Wait::thread);
    return found == stuck_.waits.end() ? nullptr : &*found;
  }

  void find_cycle() {
    for (const StuckLocks::Wait& start : stuck_.waits) {
      std::vector<size_t> path;
      const StuckLocks::Wait* at = &start;
      while (at && path.size() <= stuck_.waits.size()) {
        path.push_back(static_cast<size_t>(at - stuck_.waits.data()));
        if (at->holder == start.thread) {
          stuck_.cycle = path;
          return;
        }
        at = wait_of(at->holder);
      }
    }
  }

  const Trace& trace_;
  StuckLocks stuck_;
  std::map<Lock, uint32_t> holders_;
  std::map<uint32_t, Lock> wanted_;
};

}  // namespace

StuckLocks stuck_locks(const Trace& trace) {
  return LockGraph(trace)();
}

}  // namespace unflake
