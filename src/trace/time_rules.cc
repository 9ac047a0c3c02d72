#include "trace/cause_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/agent_protocol.h"
#include "trace/moments.h"
#include "util/text.h"

namespace unflake {
namespace {

// Clock reads and timed calls of the failing thread itself, from the delay to the failure.
int own_time_calls(const EventOrder& order, const Point& failure) {
  const auto& from = order.threads[failure.thread].late_from;
  return static_cast<int>(std::ranges::count_if(order.points, [&](const Point& point) {
    if (point.thread != failure.thread || !point.failing || point.kind != Point::Kind::begin)
      return false;
    const bool timed = order.traits_of(point) & protocol::api_timed && point.failing->value >= 0;
    return (timed || order.group_of(point) == "clock") &&
           *point.failing_at <= *failure.failing_at && from && point.failing->exit >= *from;
  }));
}

bool others_are_active(const EventOrder& order, const Point& failure) {
  return std::ranges::any_of(order.points, [&](const Point& point) {
    return point.thread != failure.thread && point.failing &&
           *point.failing_at <= *failure.failing_at;
  });
}

// A thread that waited for the late one to its end, and then looked how long that took.
CauseEvidence measured_another(const EventOrder& order, const Point& failure) {
  std::optional<Duration> from, to;
  for (const TracedEvent& event : order.with_plan().events) {
    if (!event.is_intervention) continue;
    from = std::min(from.value_or(event.enter), event.enter);
    to = std::max(to.value_or(event.exit), event.exit);
  }
  if (!from || order.plan_is_passing) return {};
  bool before = false, after = false;
  for (const Point& point : order.points) {
    if (point.thread != failure.thread || !point.failing_at || order.group_of(point) != "clock")
      continue;
    before = before || *point.failing_at < *from;
    after = after || (*point.failing_at > *to && *point.failing_at <= *failure.failing_at);
  }
  if (!before || !after) return {};
  return {0.75,
          {"the failing thread looked at the clock before the delay, waited until it was over, and "
           "looked again"}};
}

}  // namespace

CauseEvidence exact_timing(const Clues& clues) {
  if (!clues.order || !clues.order->failure || clues.crashed()) return {};
  const Point& failure = clues.order->points[*clues.order->failure];
  if (!clues.order->threads[failure.thread].late_from)
    return measured_another(*clues.order, failure);
  const int calls = own_time_calls(*clues.order, failure);
  if (calls == 0) return {};
  CauseEvidence found{
      0.85,
      {fmt::format("the thread that was late is the one that fails, and it looked at the "
                   "clock or gave a time {} in between",
                   calls == 1 ? "once" : fmt::format("{} times", calls))}};
  if (!others_are_active(*clues.order, failure))
    found.texts.push_back("no other thread was doing anything");
  else
    found.score = clues.pair ? 0.5 : 0.75;
  return found;
}

namespace {

// Somebody got no lock in time, because others kept it.
CauseEvidence starved_of_lock(const EventOrder& order) {
  for (const Point& point : order.points) {
    if (point.kind != Point::Kind::begin || order.group_of(point) != "lock") continue;
    if (!point.failing || !point.failing->timed_out) continue;
    if (point.passing && point.passing->timed_out) continue;
    return {0.93,
            {fmt::format("{} waited {} for the lock at {} and did not get it",
                         order.threads[point.thread].name,
                         format_duration(point.failing->exit - point.failing->enter),
                         short_place(moment_of(order, point).place))}};
  }
  return {};
}

}  // namespace

CauseEvidence starvation(const Clues& clues) {
  const Conditions& scarce = clues.repro->conditions;
  if (scarce == Conditions{}) return clues.order ? starved_of_lock(*clues.order) : CauseEvidence{};
  std::vector<std::string> parts;
  if (scarce.one_core) parts.push_back("all threads share one core");
  if (scarce.cpu_share < 1)
    parts.push_back(fmt::format("it may run for {:.0f} % of the time", scarce.cpu_share * 100));
  if (scarce.competitors > 0)
    parts.push_back(fmt::format("{} busy processes compete with it", scarce.competitors));
  const bool alone = clues.repro->plan.interventions.empty();
  return {alone ? 0.9 : 0.55, {"it fails when " + join(parts, " and ")}};
}

namespace {

std::string scarce_thing_in(std::string_view text) {
  for (const char* words : {"Address already in use", "EADDRINUSE", "Too many open files", "EMFILE",
                            "No space left on device", "Cannot allocate memory"})
    if (text.find(words) != std::string_view::npos) return words;
  return "";
}

std::string scarce_thing(const Clues& clues) {
  std::vector<std::string> texts{clues.repro->failure.message};
  if (clues.failing)
    for (const TracedFailure& failure : clues.failing->trace.failures)
      texts.push_back(failure.message);
  for (const std::string& text : texts)
    if (std::string found = scarce_thing_in(text); !found.empty()) return found;
  return "";
}

// A port that is taken, or that nobody listens at. A connection that only begins is not refused.
bool is_refused_when_failing(const EventOrder& order, const Point& point) {
  const TracedSite* site = order.site_of(point);
  if (!site || (site->name.api != "bind" && site->name.api != "connect")) return false;
  return point.kind == Point::Kind::begin && point.failing && point.failing->result < 0 &&
         point.passing && point.passing->result == 0;
}

}  // namespace

CauseEvidence resource(const Clues& clues) {
  if (const std::string found = scarce_thing(clues); !found.empty())
    return {0.92, {fmt::format("the failure says \"{}\"", found)}};
  if (!clues.order) return {};
  for (const Point& point : clues.order->points)
    if (is_refused_when_failing(*clues.order, point))
      return {0.92,
              {fmt::format("{} at {} was refused in the failing run only",
                           clues.order->site_of(point)->name.api,
                           short_place(moment_of(*clues.order, point).place))}};
  return {};
}

}  // namespace unflake
