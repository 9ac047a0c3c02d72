#include "trace/happens_before.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "protocol/timing_apis.h"
#include "util/paths.h"

namespace unflake {

const protocol::ApiFacts* facts_of(const TracedSite& site) {
  const bool is_call = !site.name.api.empty() && site.api < std::size(protocol::api_facts);
  return is_call ? &protocol::api_facts[site.api] : nullptr;
}

uint16_t api_traits(const TracedSite& site) {
  const protocol::ApiFacts* facts = facts_of(site);
  return facts ? facts->traits : 0;
}

bool joins(const TracedSite& site) {
  const protocol::ApiFacts* facts = facts_of(site);
  return facts && facts->edge == protocol::Edge::joins;
}

bool closes(const TracedSite& site) {
  const protocol::ApiFacts* facts = facts_of(site);
  return facts && facts->timer == protocol::Timer::closed;
}

uint16_t group_traits(const TracedSite& site) {
  const protocol::GroupFacts* group = find_timing_group(site.group);
  return group ? group->traits : 0;
}

namespace {

using protocol::Edge;

Edge edge_of(const TracedSite& site) {
  const protocol::ApiFacts* facts = facts_of(site);
  return facts ? facts->edge : Edge::none;
}

}  // namespace

bool may_wait(const TracedSite& site) {
  return api_traits(site) & protocol::api_wait;
}

bool takes_time(const TracedSite& site) {
  return api_traits(site) & protocol::api_timed;
}

bool can_wake(const TracedSite& site) {
  return api_traits(site) & protocol::api_wakes;
}

bool waits_for_signal(const TracedSite& site) {
  return may_wait(site) && group_traits(site) & protocol::group_forgets;
}

bool makes_thread(const TracedSite& site) {
  return edge_of(site) == Edge::creates;
}

bool makes_process(const TracedSite& site) {
  return edge_of(site) == Edge::forks || edge_of(site) == Edge::spawns;
}

bool is_sleep(const TracedSite& site) {
  return group_traits(site) & protocol::group_sleeps;
}

bool is_lock(const TracedSite& site) {
  return group_traits(site) & protocol::group_locks;
}

bool is_unlock(const TracedSite& site) {
  return is_lock(site) && can_wake(site);
}

bool lets_one_in(const TracedSite& site) {
  return group_traits(site) & protocol::group_guards;
}

std::string_view drawn_as(const TracedSite& site) {
  const protocol::GroupFacts* group = find_timing_group(site.group);
  return group ? group->drawn : "other";
}

bool is_untimed_wait(const TracedSite& site, const TracedCall& call) {
  return may_wait(site) && !(takes_time(site) && call.value >= 0);
}

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

// The call on the stack from which the thread was created: two calls on one line have two
// addresses. Empty: not known.
std::string spawning_site(const Trace& trace, const TracedThread& thread) {
  if (thread.spawn_stack >= trace.stacks.size()) return "";
  const auto& frames = trace.stacks[thread.spawn_stack].frames;
  const auto caller = std::ranges::find_if(
      frames, [](const TracedFrame& frame) { return frame.first_project != no_index; });
  if (caller == frames.end()) return "";
  for (const TracedSite& site : trace.sites)
    if (site.image == caller->image && site.address == caller->address && begins_somebody(site))
      return to_string(site.name);
  return "";
}

// The n-th thread of a parent and a key with the n-th creation of the same; those that are paired
// already are left alone.
template <class KeyOfThread, class KeyOfSite>
void pair_up(const Trace& trace, KeyOfThread key_of_thread, KeyOfSite key_of_site,
             std::vector<size_t>& found) {
  using Key = std::pair<uint32_t, std::string>;
  std::map<Key, std::vector<size_t>> creations;
  const std::set<size_t> taken(found.begin(), found.end());
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    const TracedCall& call = trace.calls[i];
    if (call.site < trace.sites.size() && begins_somebody(trace.sites[call.site]) &&
        !taken.contains(i))
      creations[{call.thread, key_of_site(trace.sites[call.site])}].push_back(i);
  }
  std::map<Key, std::vector<std::pair<size_t, size_t>>> children;
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    const TracedThread& thread = trace.threads[i];
    if (found[i] != no_call || thread.parent >= trace.threads.size()) continue;
    children[{thread.parent, key_of_thread(thread)}].emplace_back(spawn_of(thread.name).ordinal, i);
  }
  for (auto& [key, born] : children) {
    std::ranges::sort(born);
    const auto& made = creations[key];
    for (size_t i = 0; i < std::min(born.size(), made.size()); ++i) found[born[i].second] = made[i];
  }
}

// A process that runs another program is not named after the place that started it.
void find_by_time(const Trace& trace, std::vector<size_t>& found) {
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    const TracedCall& call = trace.calls[i];
    if (call.site >= trace.sites.size() || !makes_process(trace.sites[call.site])) continue;
    for (size_t child = 0; child < trace.threads.size(); ++child) {
      const TracedThread& thread = trace.threads[child];
      if (thread.parent != call.thread || thread.started < call.enter) continue;
      if (thread.parent < trace.threads.size() &&
          trace.threads[thread.parent].process != thread.process &&
          thread.name.text.find('#') == std::string::npos)
        found[child] = i;
    }
  }
}

}  // namespace

std::vector<size_t> find_creations(const Trace& trace) {
  std::vector<size_t> found(trace.threads.size(), no_call);
  pair_up(
      trace, [&](const TracedThread& thread) { return spawning_site(trace, thread); },
      [](const TracedSite& site) { return to_string(site.name); }, found);
  pair_up(
      trace, [](const TracedThread& thread) { return spawn_of(thread.name).place; }, place_of,
      found);
  find_by_time(trace, found);
  return found;
}

std::string executable_of(const Trace& trace, const TracedThread& thread) {
  if (thread.process >= trace.processes.size()) return "";
  const uint32_t image = trace.processes[thread.process].executable;
  return image < trace.images.size() ? base_name(trace.images[image].path) : "";
}

namespace {

struct Moment {
  Duration at{};
  size_t call = no_call;
  bool is_end = false;
};

}  // namespace

// Goes through the calls as they happened, and hands clocks over wherever an edge is.
class EdgeReplay {
 public:
  EdgeReplay(HappensBefore& result, const Trace& trace) : result_(result), trace_(trace) {
    result_.ordinal_.resize(trace.calls.size());
    result_.begin_.resize(trace.calls.size());
    result_.end_.resize(trace.calls.size());
    result_.clocks_.emplace_back(trace.threads.size());
    now_.assign(trace.threads.size(), Stamp{0, 0});
    find_children();
    find_moments();
    count_semaphores();
  }

  void operator()() {
    for (const Moment& moment : moments_) {
      if (moment.is_end)
        end(moment.call);
      else
        begin(moment.call);
    }
  }

 private:
  using Clock = HappensBefore::Clock;
  using Stamp = HappensBefore::Stamp;

  bool is_known(const TracedCall& call) const {
    return call.thread < trace_.threads.size() && call.site < trace_.sites.size();
  }

  const TracedSite& site_of(size_t call) const { return trace_.sites[trace_.calls[call].site]; }
  uint32_t process_of(const TracedCall& call) const { return trace_.threads[call.thread].process; }

  void find_moments() {
    for (size_t i = 0; i < trace_.calls.size(); ++i) {
      if (!is_known(trace_.calls[i])) continue;
      moments_.push_back({trace_.calls[i].enter, i, false});
      moments_.push_back({trace_.calls[i].exit, i, true});
    }
    std::ranges::stable_sort(moments_, {}, &Moment::at);
  }

  void find_children() {
    creation_of_ = find_creations(trace_);
    for (uint32_t child = 0; child < creation_of_.size(); ++child) {
      if (creation_of_[child] == no_call) continue;
      const uint64_t handle = trace_.calls[creation_of_[child]].object;
      child_of_handle_[{trace_.threads[child].process, handle}].push_back(child);
    }
  }

  // The calls of System V take and post in one step, which no count can follow: they are neither.
  static bool is_post(const TracedSite& site) { return edge_of(site) == Edge::posts; }
  bool is_take(size_t number) const {
    const TracedCall& call = trace_.calls[number];
    return edge_of(site_of(number)) == Edge::takes && !call.is_intervention && !call.unfinished &&
           !call.timed_out && call.result == 0;
  }

  // A semaphore that is taken more often than it was posted began with some.
  void count_semaphores() {
    std::map<uint64_t, std::pair<int64_t, int64_t>> balance;  // object -> taken - posted, the most
    for (const Moment& moment : moments_) {
      const bool posts = !moment.is_end && is_post(site_of(moment.call));
      const bool takes = moment.is_end && is_take(moment.call);
      if (!posts && !takes) continue;
      auto& [now, most] = balance[trace_.calls[moment.call].object];
      now += takes ? 1 : -1;
      most = std::max(most, now);
    }
    for (const auto& [object, counts] : balance) semaphores_[object].initial = counts.second;
  }

  void begin(size_t number) {
    const TracedCall& call = trace_.calls[number];
    Stamp& now = now_[call.thread];
    if (now.own == 0) start(call.thread);
    result_.ordinal_[number] = now.own++;
    result_.begin_[number] = now;
    if (call.is_intervention) return;
    const TracedSite& site = site_of(number);
    if (edge_of(site) == Edge::meets) {
      auto& [before, latest] =
          barriers_[call.object].try_emplace(call.thread, no_call, no_call).first->second;
      before = std::exchange(latest, number);
    } else if (is_post(site)) {
      Semaphore& semaphore = semaphores_[call.object];
      semaphore.posts[call.thread].push_back(number);
      ++semaphore.posted;
    } else if (can_wake(site)) {
      wakes_[call.object].push_back(number);
    }
  }

  void start(uint32_t thread) {
    if (creation_of_[thread] != no_call) learn(thread, known_at_begin(creation_of_[thread]));
  }

  void end(size_t number) {
    const TracedCall& call = trace_.calls[number];
    if (!call.is_intervention) {
      if (is_take(number)) ++semaphores_[call.object].taken;
      if (!call.unfinished && !call.timed_out) take_edges(number);
    }
    result_.end_[number] = now_[call.thread];
  }

  void take_edges(size_t number) {
    const TracedCall& call = trace_.calls[number];
    const TracedSite& site = site_of(number);
    const Edge edge = edge_of(site);
    if (edge == Edge::joins) return take_thread(call);
    if (edge == Edge::reaps) return take_process(call);
    if (!is_untimed_wait(site, call)) return;
    if (is_take(number)) return take_posts(call);
    if (edge == Edge::meets) return take_barrier(call);
    if (edge == Edge::notified) take_wake(call);
  }

  void take_thread(const TracedCall& call) {
    const auto children = child_of_handle_.find({process_of(call), call.object});
    if (children == child_of_handle_.end()) return;
    Clock news = nothing();
    for (const uint32_t child : children->second) add(news, now_[child], child);
    learn(call.thread, news);
  }

  void take_process(const TracedCall& call) {
    Clock news = nothing();
    for (uint32_t i = 0; i < trace_.threads.size(); ++i) {
      const uint32_t process = trace_.threads[i].process;
      if (process < trace_.processes.size() && trace_.processes[process].pid == call.result)
        add(news, now_[i], i);
    }
    learn(call.thread, news);
  }

  // Of one thread, the one that came last before the waiter went on: an earlier one would have
  // ended the wait before. Of several threads, it may have been any: only what all of them needed
  // was needed.
  void take_wake(const TracedCall& call) {
    const std::vector<size_t>& wakes = wakes_[call.object];
    std::set<uint32_t> seen;
    Clock common;
    for (auto wake = wakes.rbegin(); wake != wakes.rend(); ++wake) {
      const TracedCall& other = trace_.calls[*wake];
      if (other.enter < call.enter) break;
      if (other.thread == call.thread || !seen.insert(other.thread).second) continue;
      const Clock one = known_at_begin(*wake);
      if (common.empty()) common = one;
      for (size_t i = 0; i < common.size(); ++i) common[i] = std::min(common[i], one[i]);
    }
    if (!common.empty()) learn(call.thread, common);
  }

  // Each thread must have posted what all others together had not.
  void take_posts(const TracedCall& call) {
    const Semaphore& semaphore = semaphores_[call.object];
    const int64_t needed = semaphore.taken - semaphore.initial;
    Clock news = nothing();
    for (const auto& [thread, posts] : semaphore.posts) {
      const auto own = static_cast<int64_t>(posts.size());
      const int64_t of_it = std::min(needed - (semaphore.posted - own), own);
      if (of_it > 0) add_begin(news, posts[static_cast<size_t>(of_it) - 1]);
    }
    learn(call.thread, news);
  }

  // All threads were in it together. A quick one may already be in the next round.
  void take_barrier(const TracedCall& call) {
    Clock news = nothing();
    for (const auto& [thread, waits] : barriers_[call.object]) {
      const auto& [before, latest] = waits;
      const bool is_quick = before != no_call && trace_.calls[before].exit >= call.enter;
      if (thread != call.thread) add_begin(news, is_quick ? before : latest);
    }
    learn(call.thread, news);
  }

  Clock nothing() const { return Clock(trace_.threads.size()); }

  void add(Clock& news, const Stamp& stamp, uint32_t thread) const {
    const Clock& clock = result_.clocks_[stamp.clock];
    for (size_t i = 0; i < news.size(); ++i) news[i] = std::max(news[i], clock[i]);
    news[thread] = std::max(news[thread], stamp.own);
  }

  // Nothing that is said to have begun later than what it caused.
  void add_begin(Clock& news, size_t call) const {
    const Stamp& stamp = result_.begin_[call];
    if (stamp.clock != no_index) add(news, stamp, trace_.calls[call].thread);
  }

  Clock known_at_begin(size_t call) const {
    Clock news = nothing();
    add_begin(news, call);
    return news;
  }

  void learn(uint32_t thread, Clock news) {
    const Clock& known = result_.clocks_[now_[thread].clock];
    for (size_t i = 0; i < news.size(); ++i) news[i] = std::max(news[i], known[i]);
    if (news == known) return;
    now_[thread].clock = static_cast<uint32_t>(result_.clocks_.size());
    result_.clocks_.push_back(std::move(news));
  }

  struct Semaphore {
    int64_t initial = 0, taken = 0, posted = 0;
    std::map<uint32_t, std::vector<size_t>> posts;  // by thread
  };
  using LastTwo = std::pair<size_t, size_t>;

  HappensBefore& result_;
  const Trace& trace_;
  std::vector<Moment> moments_;
  std::vector<Stamp> now_;           // of each thread
  std::vector<size_t> creation_of_;  // per thread
  std::map<std::pair<uint32_t, uint64_t>, std::vector<uint32_t>> child_of_handle_;  // in a process
  std::map<uint64_t, std::vector<size_t>> wakes_;                                   // by object
  std::map<uint64_t, std::map<uint32_t, LastTwo>> barriers_;
  std::map<uint64_t, Semaphore> semaphores_;
};

HappensBefore::HappensBefore(const Trace& trace) : trace_(trace) {
  EdgeReplay(*this, trace)();
}

bool HappensBefore::knows(const Stamp& stamp, uint32_t thread, size_t call) const {
  if (stamp.clock == no_index || begin_[call].clock == no_index) return false;
  const uint32_t other = trace_.calls[call].thread;
  return (other == thread ? stamp.own : clocks_[stamp.clock][other]) > ordinal_[call];
}

bool HappensBefore::before_begin(size_t first, size_t second) const {
  return first != second && knows(begin_[second], trace_.calls[second].thread, first);
}

bool HappensBefore::before_end(size_t first, size_t second) const {
  return first != second && knows(end_[second], trace_.calls[second].thread, first);
}

}  // namespace unflake
