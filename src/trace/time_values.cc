#include "trace/time_values.h"

#include <algorithm>
#include <map>

#include "trace/creations.h"
#include "trace/timed_visits.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr size_t most_early = 1000;
constexpr int most_digits = 3;

Duration to_duration(int64_t ns) {
  return Duration((ns + 500) / 1000);
}

// All visits of one place, before its times are rounded.
struct Collected {
  TimeValue value;
  int64_t least_ns = INT64_MAX;
  int64_t most_ns = 0;
  const Trace* last_run = nullptr;
};

void count_end(const TimedVisit& visit, TimeValue& value) {
  ++value.visits;
  value.spent += visit.spent;
  value.ran_out += visit.end == TimedVisit::End::ran_out;
  if (visit.end != TimedVisit::End::early) return;
  ++value.ended_early;
  if (value.early.size() < most_early) value.early.push_back(visit.length);
}

void count(const TimedVisit& visit, const Trace& run, Collected& here) {
  here.least_ns = std::min(here.least_ns, visit.asked_ns);
  here.most_ns = std::max(here.most_ns, visit.asked_ns);
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

void set_times(Collected& collected) {
  TimeValue& value = collected.value;
  value.least = to_duration(collected.least_ns);
  value.most = to_duration(collected.most_ns);
  const bool is_exact = collected.least_ns == collected.most_ns && collected.least_ns % 1000 == 0;
  if (is_exact || !value.is_constant()) return;
  const int64_t round = round_time(collected.least_ns, collected.most_ns);
  if (round > 0) value.least = value.most = to_duration(round);
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
  return most - least <= std::max<Duration>(50us, most / 100);
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
