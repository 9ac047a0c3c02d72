#include "trace/timed_visits.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <tuple>

#include "trace/api_traits.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using End = TimedVisit::End;

// No test waits so long; a deadline at the end of time looks like this.
constexpr int64_t forever_ns = nanoseconds(std::chrono::years(1)).count();

template <size_t size>
bool is_one_of(const std::string& api, const std::array<std::string_view, size>& names) {
  return std::ranges::find(names, api) != names.end();
}

bool arms_descriptor(const std::string& api) {
  return api == "setsockopt" || api == "timerfd_settime";
}

bool arms_signal(const std::string& api) {
  return is_one_of(
      api, std::array<std::string_view, 4>{"alarm", "ualarm", "setitimer", "timer_settime"});
}

bool reads_descriptor(const std::string& api) {
  return is_one_of(api,
                   std::array<std::string_view, 8>{"read", "readv", "recv", "recvfrom", "recvmsg",
                                                   "recvmmsg", "accept", "accept4"});
}

int64_t ns(Duration time) {
  return nanoseconds(time).count();
}

Duration length_of(const TracedEvent& event) {
  return event.unfinished ? Duration{} : std::max(Duration{}, event.exit - event.enter);
}

bool waits_for_something(const TracedSite& site, const TracedEvent& event) {
  if (site.group == "sleep" || site.group == "timer") return false;
  return site.group != "poll" || event.object != 0;
}

// Most programs poll a timer's file and read it when it is ready: the read itself takes no time,
// and where they waited is not known.
Duration spent_on_timer(Duration since, const TracedEvent& read, int64_t asked_ns) {
  const Duration blocked = length_of(read);
  const Duration whole = std::max(Duration{}, read.exit - since);
  if (blocked >= whole / 10) return blocked;
  return std::max(blocked, std::min(whole, std::chrono::floor<Duration>(nanoseconds(asked_ns))));
}

// The waits of one thread at one site until one of them has run out.
struct OpenWait {
  size_t visit = 0;
  TracedEvent first, last;
};

// Whether this is the same wait, made again for what was left: its value is nearer to the rest
// than to the whole.
bool goes_on(const OpenWait& wait, const TracedEvent& event) {
  if (wait.last.timed_out || wait.last.unfinished || wait.last.object != event.object) return false;
  const int64_t gone = ns(event.enter - wait.first.enter);
  if (event.value > wait.first.value - gone / 2) return false;
  const int64_t rest = std::max<int64_t>(0, wait.first.value - gone);
  const int64_t tolerance = std::max(ns(2ms), wait.first.value / 50);
  return std::abs(event.value - rest) <= tolerance;
}

class VisitReader {
 public:
  explicit VisitReader(const Trace& trace) : trace_(trace) {}

  std::vector<TimedVisit> operator()() {
    for (const TracedEvent& event : trace_.events) {
      if (event.is_intervention || event.site >= trace_.sites.size()) continue;
      const std::string& api = trace_.sites[event.site].name.api;
      if (arms_descriptor(api) || reads_descriptor(api) || api == "close")
        by_descriptor_[{process_of(event), event.object}].push_back(&event);
      if (arms_signal(api))
        add(event, {});
      else if (takes_time(trace_.sites[event.site]) && !arms_descriptor(api))
        add_wait(event);
    }
    for (auto& [descriptor, events] : by_descriptor_) judge_descriptor(events);
    return std::move(visits_);
  }

 private:
  using Events = std::vector<const TracedEvent*>;

  static bool is_time(const TracedEvent& event) {
    return event.value > 0 && event.value < forever_ns;
  }

  uint32_t process_of(const TracedEvent& event) const {
    return event.thread < trace_.threads.size() ? trace_.threads[event.thread].process : no_index;
  }

  TimedVisit* add(const TracedEvent& event, Duration spent) {
    if (!is_time(event)) return nullptr;
    visits_.push_back({event.site,
                       event.thread,
                       event.value,
                       End::not_known,
                       {},
                       spent,
                       event.stack,
                       waits_for_something(trace_.sites[event.site], event)});
    return &visits_.back();
  }

  void add_wait(const TracedEvent& event) {
    if (event.value < 0) return;
    const auto [found, is_new] = open_.try_emplace({event.thread, event.site});
    OpenWait& wait = found->second;
    if (!is_new && goes_on(wait, event)) {
      visits_[wait.visit].spent += length_of(event);
    } else if (add(event, length_of(event))) {
      wait.visit = visits_.size() - 1;
      wait.first = event;
    } else {
      open_.erase(found);
      return;
    }
    wait.last = event;
    end_wait(wait);
  }

  void end_wait(const OpenWait& wait) {
    TimedVisit& visit = visits_[wait.visit];
    visit.end = End::not_known;
    if (wait.last.unfinished) return;
    visit.length = std::max(Duration{}, wait.last.exit - wait.first.enter);
    // One that was woken in vain may be woken for the last time when its time is over.
    const bool again = wait.last.enter != wait.first.enter;
    const bool in_full = again && ns(visit.length) >= visit.asked_ns;
    visit.end = wait.last.timed_out || in_full ? End::ran_out : End::early;
  }

  void judge_descriptor(Events& events) {
    std::ranges::stable_sort(events, {}, [](const TracedEvent* event) { return event->enter; });
    const auto arms = [&](const TracedEvent* event) {
      return arms_descriptor(api_of(*event)) && event->value >= 0;
    };
    auto begin = std::ranges::find_if(events, arms);
    while (begin != events.end()) {
      const auto end = std::find_if(begin + 1, events.end(), [&](const TracedEvent* event) {
        return arms(event) || api_of(*event) == "close";
      });
      const TracedEvent* const last = end != events.end() ? *end : nullptr;
      if (api_of(**begin) == "setsockopt")
        judge_socket(**begin, {begin + 1, end});
      else
        judge_timer(**begin, {begin + 1, end}, last);
      begin = std::find_if(end, events.end(), arms);
    }
  }

  // Every read has the time-out that was set.
  void judge_socket(const TracedEvent& set, const Events& reads) {
    bool judged = false;
    for (const TracedEvent* read : reads) {
      if (read->unfinished || !reads_descriptor(api_of(*read))) continue;
      TimedVisit* visit = add(set, length_of(*read));
      if (visit == nullptr) return;
      visit->length = length_of(*read);
      const bool in_full = ns(visit->length) >= set.value / 10 * 9;
      visit->end = read->result < 0 && in_full ? End::ran_out : End::early;
      judged = true;
    }
    if (!judged) add(set, {});
  }

  // A timer has run out when it could be read, and one with an interval is read again and again.
  // One that is set again, or closed, before its time has ended early.
  void judge_timer(const TracedEvent& set, const Events& reads, const TracedEvent* last) {
    TimedVisit* visit = add(set, {});
    if (visit == nullptr) return;
    Duration since = set.enter;
    for (const TracedEvent* read : reads) {
      if (read->unfinished || read->result <= 0) continue;
      visit->end = End::ran_out;
      visit->spent += spent_on_timer(since, *read, set.value);
      visit->length = std::max(Duration{}, read->exit - set.enter);
      since = read->exit;
    }
    if (visit->end == End::ran_out) return;
    if (last == nullptr || ns(last->enter - set.enter) >= set.value) return;
    visit->end = End::early;
    visit->length = std::max(Duration{}, last->enter - set.enter);
  }

  const std::string& api_of(const TracedEvent& event) const {
    return trace_.sites[event.site].name.api;
  }

  const Trace& trace_;
  std::vector<TimedVisit> visits_;
  std::map<std::pair<uint32_t, uint32_t>, OpenWait> open_;         // by thread and site
  std::map<std::pair<uint32_t, uint64_t>, Events> by_descriptor_;  // by process and number
};

}  // namespace

std::vector<TimedVisit> timed_visits(const Trace& trace) {
  return VisitReader(trace)();
}

}  // namespace unflake
