#include "trace/happens_before.h"

#include <algorithm>
#include <map>

#include "trace/api_traits.h"
#include "trace/creations.h"

namespace unflake {
namespace {

bool is_join(const TracedSite& site) {
  return site.name.api == "pthread_join" || site.name.api == "thrd_join";
}

bool is_wait_for_process(const TracedSite& site) {
  return site.name.api.starts_with("wait") && site.group == "process";
}

struct Moment {
  Duration at{};
  size_t event = no_event;
  bool is_end = false;
};

}  // namespace

// Goes through the events as they happened, and hands clocks over wherever an edge is.
class EdgeReplay {
 public:
  EdgeReplay(HappensBefore& result, const Trace& trace) : result_(result), trace_(trace) {
    result_.ordinal_.resize(trace.events.size());
    result_.begin_.resize(trace.events.size());
    result_.end_.resize(trace.events.size());
    clocks_.assign(trace.threads.size(), Clock(trace.threads.size()));
    begun_.resize(trace.threads.size());
    started_.resize(trace.threads.size());
    find_children();
    count_semaphores();
  }

  void operator()() {
    for (const Moment& moment : moments()) {
      if (moment.is_end)
        end(moment.event);
      else
        begin(moment.event);
    }
  }

 private:
  using Clock = HappensBefore::Clock;

  bool is_known(const TracedEvent& event) const {
    return event.thread < trace_.threads.size() && event.site < trace_.sites.size();
  }

  const TracedSite& site_of(size_t event) const { return trace_.sites[trace_.events[event].site]; }

  std::vector<Moment> moments() const {
    std::vector<Moment> all;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      if (!is_known(trace_.events[i])) continue;
      all.push_back({trace_.events[i].enter, i, false});
      all.push_back({trace_.events[i].exit, i, true});
    }
    std::ranges::stable_sort(all, {}, &Moment::at);
    return all;
  }

  void find_children() {
    creation_of_ = find_creations(trace_);
    for (uint32_t child = 0; child < creation_of_.size(); ++child)
      if (creation_of_[child] != no_event)
        child_of_handle_[trace_.events[creation_of_[child]].object].push_back(child);
  }

  // A semaphore that is taken more often than it was posted began with some.
  void count_semaphores() {
    std::map<uint64_t, std::pair<int64_t, int64_t>> balance;  // object -> taken - posted, the most
    for (const Moment& moment : moments()) {
      const TracedSite& site = site_of(moment.event);
      if (site.group != "semaphore") continue;
      const TracedEvent& event = trace_.events[moment.event];
      auto& [now, most] = balance[event.object];
      if (!moment.is_end && can_wake(site)) --now;
      if (moment.is_end && is_untimed_wait(site, event)) most = std::max(most, ++now);
    }
    for (const auto& [object, counts] : balance)
      semaphores_[object].initial = static_cast<size_t>(std::max<int64_t>(counts.second, 0));
  }

  void begin(size_t number) {
    const TracedEvent& event = trace_.events[number];
    Clock& clock = clocks_[event.thread];
    if (!started_[event.thread]) start(event.thread);
    result_.ordinal_[number] = begun_[event.thread]++;
    clock[event.thread] = begun_[event.thread];
    result_.begin_[number] = clock;
    const TracedSite& site = site_of(number);
    if (can_wake(site)) wakes_[event.object].push_back(number);
    if (site.group == "semaphore" && can_wake(site))
      semaphores_[event.object].posts.push_back(number);
  }

  void start(uint32_t thread) {
    started_[thread] = true;
    if (const size_t creation = creation_of_[thread]; creation != no_event) {
      join(clocks_[thread], result_.begin_[creation]);
    } else if (const uint32_t parent = trace_.threads[thread].parent; parent < clocks_.size()) {
      join(clocks_[thread], clocks_[parent]);
    }
  }

  void end(size_t number) {
    const TracedEvent& event = trace_.events[number];
    Clock& clock = clocks_[event.thread];
    if (!event.unfinished && !event.timed_out && !event.is_intervention) take_edges(number, clock);
    result_.end_[number] = clock;
  }

  void take_edges(size_t number, Clock& clock) {
    const TracedEvent& event = trace_.events[number];
    const TracedSite& site = site_of(number);
    if (is_join(site)) return take_thread(event, clock);
    if (is_wait_for_process(site)) return take_process(event, clock);
    if (!is_untimed_wait(site, event)) return;
    if (site.group == "semaphore") return take_post(event, clock);
    if (site.group == "barrier") return take_barrier(event, clock);
    if (site.group == "condition" || site.group == "futex") take_wake(event, clock);
  }

  void take_thread(const TracedEvent& event, Clock& clock) {
    const auto children = child_of_handle_.find(event.object);
    if (children == child_of_handle_.end()) return;
    for (const uint32_t child : children->second) join(clock, clocks_[child]);
  }

  void take_process(const TracedEvent& event, Clock& clock) {
    for (uint32_t i = 0; i < trace_.threads.size(); ++i) {
      const uint32_t process = trace_.threads[i].process;
      if (process < trace_.processes.size() && trace_.processes[process].pid == event.result)
        join(clock, clocks_[i]);
    }
  }

  // The one that came last before the waiter went on: an earlier one would have ended the wait
  // before.
  void take_wake(const TracedEvent& event, Clock& clock) {
    const std::vector<size_t>& wakes = wakes_[event.object];
    for (auto wake = wakes.rbegin(); wake != wakes.rend(); ++wake) {
      const TracedEvent& other = trace_.events[*wake];
      if (other.enter < event.enter) return;
      if (other.thread == event.thread) continue;
      return join(clock, result_.begin_[*wake]);
    }
  }

  void take_post(const TracedEvent& event, Clock& clock) {
    Semaphore& semaphore = semaphores_[event.object];
    const size_t number = semaphore.taken++;
    if (number < semaphore.initial) return;
    const size_t post = number - semaphore.initial;
    if (post < semaphore.posts.size()) join(clock, result_.begin_[semaphore.posts[post]]);
  }

  void take_barrier(const TracedEvent& event, Clock& clock) {
    for (const size_t other : wakes_[event.object]) join(clock, result_.begin_[other]);
  }

  static void join(Clock& clock, const Clock& other) {
    for (size_t i = 0; i < std::min(clock.size(), other.size()); ++i)
      clock[i] = std::max(clock[i], other[i]);
  }

  struct Semaphore {
    size_t initial = 0, taken = 0;
    std::vector<size_t> posts;
  };

  HappensBefore& result_;
  const Trace& trace_;
  std::vector<Clock> clocks_;
  std::vector<uint32_t> begun_;
  std::vector<bool> started_;
  std::vector<size_t> creation_of_;  // per thread
  std::map<uint64_t, std::vector<uint32_t>> child_of_handle_;
  std::map<uint64_t, std::vector<size_t>> wakes_;  // by object
  std::map<uint64_t, Semaphore> semaphores_;
};

HappensBefore::HappensBefore(const Trace& trace) : trace_(trace) {
  EdgeReplay(*this, trace)();
}

bool HappensBefore::before_begin(size_t first, size_t second) const {
  return first != second && !begin_[second].empty() && knows(begin_[second], first);
}

bool HappensBefore::before_end(size_t first, size_t second) const {
  return first != second && !end_[second].empty() && knows(end_[second], first);
}

}  // namespace unflake
