#include "trace/api_traits.h"
#include "trace/cause_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/agent_protocol.h"
#include "trace/moments.h"

namespace unflake {
namespace {

// A test that waits for a result is the one that fails without it.
bool fails_elsewhere(const Clues& clues) {
  const auto& failure = clues.order->failure;
  return failure && clues.order->points[*failure].thread != clues.second()->thread;
}

}  // namespace

CauseEvidence async_wait(const Clues& clues) {
  const auto& wait = clues.found->wait;
  if (!wait) return {};
  const std::string place = short_place(wait->moment.place);
  const auto& critical = clues.found->pair->first;
  if (!wait->is_sleep && wait->ran_out_failing && !wait->ran_out_passing)
    return {0.92,
            {fmt::format("the timed wait at {} ran out in the failing run and did not in the "
                         "passing one",
                         place)}};
  const std::string kind = wait->is_sleep ? "sleep" : "timed wait";
  const Point& second = *clues.second();
  const bool covers =
      wait->needed && wait->passing && *wait->moment.passing + *wait->needed <= *second.passing_to;
  if (covers)
    return {
        fails_elsewhere(clues) ? 0.6 : 0.9,
        {fmt::format("nothing but the {} at {} keeps {} behind {}", kind, place,
                     short_place(clues.found->pair->second.place), short_place(critical.place))}};
  return {fails_elsewhere(clues) ? 0.5 : 0.65,
          {fmt::format("{} waits at {} for a fixed time before it goes on", wait->moment.thread,
                       place)}};
}

namespace {

// A delay at a call would have been found first.
const Intervention* delay_at_line(const Clues& clues) {
  const auto& all = clues.repro->plan.interventions;
  const auto found = std::ranges::find_if(all, [](const Intervention& one) {
    return one.action == Intervention::Action::delay && one.site.api.empty();
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

CauseEvidence ordering(const Clues& clues) {
  if (const Intervention* line = delay_at_line(clues))
    return {0.91,
            {fmt::format("it fails when a thread is late at {}, between two calls: another one "
                         "sees, in memory that no call protects, what is half done",
                         short_place({line->site.file, line->site.line, line->site.function}))}};
  if (!clues.pair) return {};
  if (clues.found->wait && fails_elsewhere(clues))
    return {0.68,
            {"the order of two threads decides; the one that waits a fixed time goes by a time of "
             "its own, and is not the one that fails"}};
  if (clues.found->wait) return {0.4, {"the order of two threads decides"}};
  if (clues.pair->same_object)
    return {0.7,
            {"two threads use the same object, and nothing makes one of them come first: no wait "
             "stands between them"}};
  return {0.6, {"the order of two threads decides, and no wait stands between them"}};
}

namespace {

bool is_signal_for(const Trace& trace, const TracedEvent& wait, const TracedEvent& signal) {
  if (signal.site >= trace.sites.size() || wait.site >= trace.sites.size()) return false;
  const TracedSite &one = trace.sites[wait.site], &other = trace.sites[signal.site];
  return !signal.is_intervention && signal.thread != wait.thread && one.group == other.group &&
         wait.object == signal.object && can_wake(other);
}

bool forgets_signals(std::string_view group) {
  return group == "condition" || group == "futex";
}

// A wait that began after the only signal for it, and that no other signal ended.
const TracedEvent* missed_signal(const Trace& trace, const TracedEvent& wait) {
  const TracedEvent* missed = nullptr;
  for (const TracedEvent& event : trace.events) {
    if (!is_signal_for(trace, wait, event)) continue;
    if (event.enter >= wait.enter && event.enter <= wait.exit) return nullptr;
    if (event.enter < wait.enter && (!missed || event.enter > missed->enter)) missed = &event;
  }
  return missed;
}

}  // namespace

namespace {

// Those of the standard library's waits that take a predicate look before they wait, and are
// templates in the program; whether somebody's own loop does so, cannot be seen.
bool waits_blindly(const Trace& trace, const TracedEvent& wait) {
  if (wait.stack >= trace.stacks.size()) return false;
  bool by_library = false;
  for (const TracedFrame& frame : trace.stacks[wait.stack].frames) {
    by_library =
        by_library || (frame.image < trace.images.size() &&
                       trace.images[frame.image].path.find("libstdc++") != std::string::npos);
    for (const Frame& source : frame.source) {
      if (source.function.find("condition_variable") == std::string::npos) continue;
      by_library = true;
      if (source.function.find("{lambda") != std::string::npos) return false;
    }
  }
  return by_library;
}

}  // namespace

// The signal came when nobody waited. With a predicate that does no harm, so it may be no more than
// a hint.
bool signal_overtook_wait(const Clues& clues) {
  if (!clues.pair || !clues.pair->same_object) return false;
  return clues.first()->kind == Point::Kind::begin &&
         forgets_signals(clues.order->group_of(*clues.first())) &&
         clues.order->traits_of(*clues.first()) & protocol::api_wait &&
         clues.order->traits_of(*clues.second()) & protocol::api_wakes;
}

CauseEvidence lost_wakeup(const Clues& clues) {
  if (!clues.order) return {};
  for (const Point& point : clues.order->points) {
    if (point.kind != Point::Kind::begin || !point.failing) continue;
    const TracedEvent& wait = *point.failing;
    if (!forgets_signals(clues.order->group_of(point)) || !(wait.timed_out || wait.unfinished) ||
        !(clues.order->traits_of(point) & protocol::api_wait))
      continue;
    if (point.passing && (point.passing->timed_out || point.passing->unfinished)) continue;
    const TracedEvent* missed = missed_signal(clues.failing->trace, wait);
    if (!missed) continue;
    const std::string place = short_place(moment_of(*clues.order, point).place);
    return {point.passing ? 0.95 : 0.9,
            {fmt::format("the signal came {} before {} began to wait at {}, and nobody signalled "
                         "again",
                         format_duration(wait.enter - missed->enter),
                         name_of_thread(clues.failing->trace, wait.thread), place),
             wait.unfinished ? "the wait never ended" : "the wait ended at its time-out"}};
  }
  if (signal_overtook_wait(clues))
    return {waits_blindly(*clues.order->passing, *clues.first()->passing) ? 0.85 : 0.62,
            {fmt::format("the signal at {} came before anybody waited at {}",
                         short_place(clues.found->pair->second.place),
                         short_place(clues.found->pair->first.place))}};
  return {};
}

namespace {

bool is_between_processes(std::string_view group) {
  return group == "socket" || group == "file" || group == "queue" || group == "process" ||
         group == "poll";
}

uint32_t process_of(const EventOrder& order, const Point& point) {
  const OrderedThread& thread = order.threads[point.thread];
  const Trace& trace = thread.failing != no_index ? *order.failing : *order.passing;
  const uint32_t number = thread.failing != no_index ? thread.failing : thread.passing;
  return number < trace.threads.size() ? trace.threads[number].process : no_index;
}

}  // namespace

CauseEvidence process_handover(const Clues& clues) {
  if (!clues.pair) return {};
  const Point &first = *clues.first(), &second = *clues.second();
  const double covered = clues.found->wait ? 0.1 : 0;
  if (process_of(*clues.order, first) != process_of(*clues.order, second))
    return {0.94, {"the two that must keep an order are in different processes"}};
  if (is_between_processes(clues.order->group_of(first)) &&
      is_between_processes(clues.order->group_of(second)))
    return {0.72 - covered, {"the two hand over through sockets, pipes or files"}};
  return {};
}

}  // namespace unflake
