#include "trace/time_values.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>

#include "protocol/timing_apis.h"
#include "trace/happens_before.h"
#include "trace/names.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using protocol::Timer;
using std::chrono::nanoseconds;
using End = TimedVisit::End;

// No test waits this long; a deadline at the end of time looks like this.
constexpr int64_t forever_ns = nanoseconds(std::chrono::years(1)).count();

Timer timer_of(const TracedSite& site) {
  const protocol::ApiFacts* facts = facts_of(site);
  return facts ? facts->timer : Timer::none;
}

bool arms_descriptor(Timer timer) {
  return timer == Timer::file || timer == Timer::socket;
}

int64_t ns(Duration time) {
  return nanoseconds(time).count();
}

Duration length_of(const TracedCall& call) {
  return call.unfinished ? Duration{} : std::max(Duration{}, call.exit - call.enter);
}

bool waits_for_something(const TracedSite& site, const TracedCall& call) {
  const uint16_t group = group_traits(site);
  if (group & (protocol::group_sleeps | protocol::group_timers)) return false;
  return !(group & protocol::group_polls) || call.object != 0;
}

// Most programs poll a timer's file and read it when it is ready: the read itself takes no time,
// and where they waited is not known.
Duration spent_on_timer(Duration since, const TracedCall& read, int64_t asked_ns) {
  const Duration blocked = length_of(read);
  const Duration whole = std::max(Duration{}, read.exit - since);
  if (blocked >= whole / 10) return blocked;
  return std::max(blocked, std::min(whole, std::chrono::floor<Duration>(nanoseconds(asked_ns))));
}

// The waits of one thread at one site until one of them has run out.
struct OpenWait {
  size_t visit = 0;
  TracedCall first, last;
};

// Whether this is the same wait, made again for what was left: its value is nearer to the rest
// than to the whole.
bool goes_on(const OpenWait& wait, const TracedCall& call) {
  if (wait.last.timed_out || wait.last.unfinished || wait.last.object != call.object) return false;
  const int64_t gone = ns(call.enter - wait.first.enter);
  if (call.value > wait.first.value - gone / 2) return false;
  const int64_t rest = std::max<int64_t>(0, wait.first.value - gone);
  const int64_t tolerance = std::max(ns(2ms), wait.first.value / 50);
  return std::abs(call.value - rest) <= tolerance;
}

class VisitReader {
 public:
  explicit VisitReader(const Trace& trace) : trace_(trace) {}

  std::vector<TimedVisit> operator()() {
    for (const TracedCall& call : trace_.calls) {
      if (call.is_intervention || call.site >= trace_.sites.size()) continue;
      const Timer timer = timer_of(call);
      if (arms_descriptor(timer) || timer == Timer::read || timer == Timer::closed)
        by_descriptor_[{process_of(call), call.object}].push_back(&call);
      if (timer == Timer::signal)
        add(call, {});
      else if (takes_time(trace_.sites[call.site]) && !arms_descriptor(timer))
        add_wait(call);
    }
    for (auto& [descriptor, calls] : by_descriptor_) judge_descriptor(calls);
    return std::move(visits_);
  }

 private:
  using Calls = std::vector<const TracedCall*>;

  static bool is_time(const TracedCall& call) { return call.value > 0 && call.value < forever_ns; }

  uint32_t process_of(const TracedCall& call) const {
    return call.thread < trace_.threads.size() ? trace_.threads[call.thread].process : no_index;
  }

  TimedVisit* add(const TracedCall& call, Duration spent) {
    if (!is_time(call)) return nullptr;
    visits_.push_back({call.site,
                       call.thread,
                       call.value,
                       End::not_known,
                       {},
                       spent,
                       call.stack,
                       waits_for_something(trace_.sites[call.site], call)});
    return &visits_.back();
  }

  void add_wait(const TracedCall& call) {
    if (call.value < 0) return;
    const auto [found, is_new] = open_.try_emplace({call.thread, call.site});
    OpenWait& wait = found->second;
    if (!is_new && goes_on(wait, call)) {
      visits_[wait.visit].spent += length_of(call);
    } else if (add(call, length_of(call))) {
      wait.visit = visits_.size() - 1;
      wait.first = call;
    } else {
      open_.erase(found);
      return;
    }
    wait.last = call;
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

  void judge_descriptor(Calls& calls) {
    std::ranges::stable_sort(calls, {}, [](const TracedCall* call) { return call->enter; });
    const auto arms = [&](const TracedCall* call) {
      return arms_descriptor(timer_of(*call)) && call->value >= 0;
    };
    auto begin = std::ranges::find_if(calls, arms);
    while (begin != calls.end()) {
      const auto end = std::find_if(begin + 1, calls.end(), [&](const TracedCall* call) {
        return arms(call) || timer_of(*call) == Timer::closed;
      });
      const TracedCall* const last = end != calls.end() ? *end : nullptr;
      if (timer_of(**begin) == Timer::socket)
        judge_socket(**begin, {begin + 1, end});
      else
        judge_timer(**begin, {begin + 1, end}, last);
      begin = std::find_if(end, calls.end(), arms);
    }
  }

  // Every read has the time-out that was set.
  void judge_socket(const TracedCall& set, const Calls& reads) {
    bool judged = false;
    for (const TracedCall* read : reads) {
      if (read->unfinished || timer_of(*read) != Timer::read) continue;
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
  void judge_timer(const TracedCall& set, const Calls& reads, const TracedCall* last) {
    TimedVisit* visit = add(set, {});
    if (visit == nullptr) return;
    Duration since = set.enter;
    for (const TracedCall* read : reads) {
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

  Timer timer_of(const TracedCall& call) const {
    return unflake::timer_of(trace_.sites[call.site]);
  }

  const Trace& trace_;
  std::vector<TimedVisit> visits_;
  std::map<std::pair<uint32_t, uint32_t>, OpenWait> open_;        // by thread and site
  std::map<std::pair<uint32_t, uint64_t>, Calls> by_descriptor_;  // by process and number
};

}  // namespace

std::vector<TimedVisit> timed_visits(const Trace& trace) {
  return VisitReader(trace)();
}

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr size_t most_early = 1000;
constexpr int most_digits = 3;
constexpr size_t most_callers = 100;
constexpr size_t most_levels = 3;  // of functions that only pass a time on

Duration to_duration(int64_t ns) {
  return Duration((ns + 500) / 1000);
}

// What was asked for, before it is rounded.
struct Asked {
  int64_t least_ns = INT64_MAX;
  int64_t most_ns = 0;
  uint64_t visits = 0;
  Duration spent{};

  void add(const Asked& other) {
    least_ns = std::min(least_ns, other.least_ns);
    most_ns = std::max(most_ns, other.most_ns);
    visits += other.visits;
    spent += other.spent;
  }
};

// The lines above a place, nearest first.
using CallPath = std::vector<std::string>;

// All visits of one place.
struct Collected {
  TimeValue value;
  Asked asked;
  std::map<CallPath, Asked> by_path;  // a bounded number
  const Trace* last_run = nullptr;
};

CallPath call_path(const TimedVisit& visit, const Trace& run) {
  CallPath path;
  if (visit.stack >= run.stacks.size()) return path;
  for (const Frame* frame : callers_of(run.stacks[visit.stack], run.sites[visit.site].name))
    if (path.size() < most_levels) path.push_back(location_of(*frame));
  return path;
}

void count_end(const TimedVisit& visit, TimeValue& value) {
  ++value.visits;
  value.spent += visit.spent;
  value.ran_out += visit.end == TimedVisit::End::ran_out;
  if (visit.end != TimedVisit::End::early) return;
  ++value.ended_early;
  if (value.early.size() < most_early) value.early.push_back(visit.length);
}

void count(const TimedVisit& visit, const Trace& run, Collected& here) {
  const Asked asked{visit.asked_ns, visit.asked_ns, 1, visit.spent};
  here.asked.add(asked);
  CallPath path = call_path(visit, run);
  if (!path.empty() && (here.by_path.size() < most_callers || here.by_path.contains(path)))
    here.by_path[std::move(path)].add(asked);
  here.value.could_end_early |= visit.could_end_early;
  here.value.runs += here.last_run != &run;
  here.last_run = &run;
  count_end(visit, here.value);
}

// The number with the fewest digits that is at most 1 % more; 0: none. A deadline is always met
// with a little less than what was meant by it, never with more.
int64_t round_time(int64_t least_ns, int64_t most_ns) {
  int64_t grid = 1;
  while (grid <= most_ns / 10) grid *= 10;
  for (int digits = 1; digits <= most_digits && grid >= 1000; ++digits, grid /= 10) {
    const int64_t round = (most_ns + grid - 1) / grid * grid;
    if (round - least_ns <= least_ns / 100) return round;
  }
  return 0;
}

struct TimeSpan {
  Duration least{}, most{};
  bool is_constant() const { return are_about_the_same(least, most); }
};

TimeSpan rounded(const Asked& asked) {
  const TimeSpan span{to_duration(asked.least_ns), to_duration(asked.most_ns)};
  const bool is_exact = asked.least_ns == asked.most_ns && asked.least_ns % 1000 == 0;
  if (is_exact || !span.is_constant()) return span;
  const int64_t round = round_time(asked.least_ns, asked.most_ns);
  return round > 0 ? TimeSpan{to_duration(round), to_duration(round)} : span;
}

// A time that is computed differs between two visits of one line too: only callers that always ask
// for the same, and not for what another one does, show that they choose it.
bool choose_the_time(const std::vector<TimeValue::Caller>& callers) {
  std::vector<Duration> times;
  for (const TimeValue::Caller& caller : callers)
    if (caller.visits > 1 && are_about_the_same(caller.least, caller.most))
      times.push_back(caller.most);
  if (times.empty()) return false;
  const auto [shortest, longest] = std::ranges::minmax(times);
  return !are_about_the_same(shortest, longest);
}

using ByPath = std::map<CallPath, Asked>;

// The lines that choose, this many levels above the place; above one that passes on what its own
// callers choose, those.
std::vector<TimeValue::Caller> callers_from(size_t level, const ByPath& by_path) {
  std::map<std::string, ByPath> by_line;
  for (const auto& [path, asked] : by_path)
    if (level < path.size()) by_line[path[level]].emplace(path, asked);
  std::vector<TimeValue::Caller> callers;
  for (const auto& [line, paths] : by_line) {
    Asked all;
    for (const auto& [path, asked] : paths) all.add(asked);
    const TimeSpan span = rounded(all);
    auto above =
        span.is_constant() ? std::vector<TimeValue::Caller>() : callers_from(level + 1, paths);
    if (choose_the_time(above))
      std::ranges::move(above, std::back_inserter(callers));
    else
      callers.push_back({line, span.least, span.most, all.visits, all.spent});
  }
  return callers;
}

std::vector<TimeValue::Caller> choosing_callers(const ByPath& by_path) {
  auto callers = callers_from(0, by_path);
  if (!choose_the_time(callers)) return {};
  std::ranges::stable_sort(callers, std::ranges::greater(), &TimeValue::Caller::spent);
  return callers;
}

void set_times(Collected& collected) {
  TimeValue& value = collected.value;
  const TimeSpan span = rounded(collected.asked);
  value.least = span.least;
  value.most = span.most;
  if (!value.is_constant()) value.callers = choosing_callers(collected.by_path);
}

class Collector {
 public:
  void add(const Trace& run) {
    for (const TimedVisit& visit : timed_visits(run)) count(visit, run, at(visit, run));
  }

  std::vector<TimeValue> values() {
    std::vector<TimeValue> all;
    for (auto& [key, collected] : collected_) {
      set_times(collected);
      all.push_back(std::move(collected.value));
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &TimeValue::spent);
    return all;
  }

 private:
  Collected& at(const TimedVisit& visit, const Trace& run) {
    const TracedSite& site = run.sites[visit.site];
    std::string executable =
        visit.thread < run.threads.size() ? executable_of(run, run.threads[visit.thread]) : "";
    const auto [found, is_new] = collected_.try_emplace({site.name, executable});
    TimeValue& value = found->second.value;
    if (!is_new) return found->second;
    value.site = site.name;
    value.executable = std::move(executable);
    value.group = site.group;
    value.location = site.location;
    if (site.image < run.images.size()) value.is_project = run.images[site.image].is_project;
    return found->second;
  }

  std::map<std::pair<SiteName, std::string>, Collected> collected_;
};

}  // namespace

Duration meant_time(int64_t asked_ns) {
  return rounded(Asked{asked_ns, asked_ns, 1, {}}).most;
}

std::vector<TimeValue> time_values(std::span<const Trace* const> runs) {
  Collector collector;
  for (const Trace* run : runs)
    if (run != nullptr) collector.add(*run);
  return collector.values();
}

}  // namespace unflake
