#include <algorithm>
#include <map>

#include "protocol/agent_protocol.h"
#include "trace/moments.h"

namespace unflake {
namespace {

constexpr uint16_t timed_wait = protocol::api_wait | protocol::api_timed;

// All waits of one thread at one site that end before the second point, and after the delay began.
struct Waits {
  const Point* first = nullptr;
  int times = 0;
  std::optional<Duration> passing;
  std::optional<Duration> passing_begin;
  Duration failing{};
  bool ran_out_passing = false, ran_out_failing = false;
};

bool is_timed(const EventOrder& order, const Point& point) {
  const TracedEvent* event = point.failing ? point.failing : point.passing;
  return point.kind == Point::Kind::begin && (order.traits_of(point) & timed_wait) == timed_wait &&
         event->value >= 0;
}

// In a run under the plan a wait that was over before anything was late kept nobody.
bool stands_between(const EventOrder& order, const PointPair& pair, const Point& wait) {
  const Point &first = order.points[pair.first], &second = order.points[pair.second];
  if (!wait.failing || wait.failing->enter >= *second.failing_at) return false;
  if (wait.failing == second.failing && second.kind != Point::Kind::end) return false;
  const auto& from = order.threads[first.thread].late_from;
  return order.plan_is_passing || !from || wait.failing->exit > *from;
}

void add(Waits& waits, const Point& wait) {
  if (!waits.first) waits.first = &wait;
  ++waits.times;
  waits.failing += wait.failing->exit - wait.failing->enter;
  waits.ran_out_failing = waits.ran_out_failing || wait.failing->timed_out;
  if (!wait.passing) return;
  waits.passing = waits.passing.value_or(Duration{}) + (wait.passing->exit - wait.passing->enter);
  waits.passing_begin =
      std::min(waits.passing_begin.value_or(wait.passing->enter), wait.passing->enter);
  waits.ran_out_passing = waits.ran_out_passing || wait.passing->timed_out;
}

CoveringWait described(const EventOrder& order, const Waits& waits, const Point& critical) {
  CoveringWait wait;
  wait.moment = moment_of(order, *waits.first);
  wait.is_sleep = order.group_of(*waits.first) == "sleep";
  wait.times = waits.times;
  wait.asked =
      std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(waits.first->failing->value));
  wait.passing = waits.passing;
  wait.failing = waits.failing;
  wait.ran_out_passing = waits.ran_out_passing;
  wait.ran_out_failing = waits.ran_out_failing;
  if (waits.passing_begin && critical.passing_from && *critical.passing_from > *waits.passing_begin)
    wait.needed = *critical.passing_from - *waits.passing_begin;
  return wait;
}

}  // namespace

std::optional<CoveringWait> covering_wait(const EventOrder& order, const PointPair& pair) {
  const Point &first = order.points[pair.first], &second = order.points[pair.second];
  std::map<const TracedSite*, Waits> sites;
  std::vector<const TracedSite*> seen;
  for (const Point& point : order.points) {
    if (point.thread != second.thread || !is_timed(order, point)) continue;
    if (!stands_between(order, pair, point)) continue;
    const TracedSite* site = &order.failing->sites[point.failing->site];
    if (!sites.contains(site)) seen.push_back(site);
    add(sites[site], point);
  }
  const auto longest = std::ranges::max_element(
      seen, {}, [&](const TracedSite* site) { return sites.at(site).failing; });
  if (longest == seen.end()) return std::nullopt;
  return described(order, sites.at(*longest), first);
}

}  // namespace unflake
