#include "trace/time_values.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "trace/creations.h"
#include "trace/moments.h"
#include "trace/timed_visits.h"

namespace unflake {
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
  for (const Frame* frame : callers_of(run, run.stacks[visit.stack], run.sites[visit.site].name))
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

// The number with the fewest digits that is at most 1 % beyond; 0: none. A deadline is always met
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

// Less than this is how a deadline is met, and no other time.
bool are_about_the_same(Duration least, Duration most) {
  return most - least <= std::max<Duration>(50us, most / 100);
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

// A time that is computed differs between two visits of one line, too: only callers that always ask
// for the same, and not for what another one does, tell that it is they who choose.
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

std::string_view to_string(TimeUse use) {
  switch (use) {
    case TimeUse::wait:
      return "wait";
    case TimeUse::timeout:
      return "time-out";
    case TimeUse::mixed:
      return "mixed";
    case TimeUse::not_seen:
      return "not seen";
  }
  return "?";
}

bool TimeValue::is_constant() const {
  return are_about_the_same(least, most);
}

TimeUse TimeValue::use() const {
  if (ran_out > 0 && ended_early > 0) return TimeUse::mixed;
  if (ran_out > 0) return TimeUse::wait;
  return ended_early > 0 ? TimeUse::timeout : TimeUse::not_seen;
}

std::vector<TimeValue> time_values(std::span<const Trace* const> runs) {
  Collector collector;
  for (const Trace* run : runs)
    if (run != nullptr) collector.add(*run);
  return collector.values();
}

}  // namespace unflake
