#include "model/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/timing_apis.h"

namespace unflake {

// A smaller difference is how a deadline is met, not another time.
bool are_about_the_same(Duration least, Duration most) {
  return most - least <= std::max<Duration>(std::chrono::microseconds(50), most / 100);
}

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

namespace {

bool has_trait(const std::string& group, uint16_t trait) {
  const protocol::GroupFacts* facts = find_timing_group(group);
  return facts && facts->traits & trait;
}

}  // namespace

bool TimeValue::is_sleep() const {
  return has_trait(group, protocol::group_sleeps);
}

bool TimeValue::is_timer() const {
  return has_trait(group, protocol::group_timers);
}

bool TimeValue::is_never_when_zero() const {
  const protocol::ApiFacts* api = find_timing_api(site.api);
  return is_timer() || (api && api->timer == protocol::Timer::socket);
}

TimeUse TimeValue::use() const {
  if (ran_out > 0 && ended_early > 0) return TimeUse::mixed;
  if (ran_out > 0) return TimeUse::wait;
  return ended_early > 0 ? TimeUse::timeout : TimeUse::not_seen;
}

Duration end_of(const Trace& trace) {
  Duration end{};
  for (const TracedCall& call : trace.calls) end = std::max(end, call.exit);
  for (const TracedThread& thread : trace.threads) end = std::max(end, thread.ended);
  return end;
}

const TracedThread* scheduled_thread(const Trace& trace, ThreadNumber number) {
  if (!trace.controlled || number >= trace.controlled->threads.size()) return nullptr;
  const uint32_t thread = trace.controlled->threads[number];
  return thread < trace.threads.size() ? &trace.threads[thread] : nullptr;
}

namespace {

std::string name_of_deadlocked(const Trace& trace, ThreadNumber number) {
  const TracedThread* thread = deadlocked_thread(trace, number);
  return thread != nullptr ? thread->name.text : fmt::format("thread {}", number);
}

}  // namespace

const std::vector<DeadlockedThread>& deadlock_of(const Trace& trace) {
  return trace.controlled ? trace.controlled->deadlock : trace.deadlock;
}

const TracedThread* deadlocked_thread(const Trace& trace, ThreadNumber number) {
  if (trace.controlled) return scheduled_thread(trace, number);
  return number < trace.threads.size() ? &trace.threads[number] : nullptr;
}

std::string deadlock_text(const Trace& trace) {
  std::string text;
  for (const DeadlockedThread& stuck : deadlock_of(trace)) {
    text += text.empty() ? "deadlock: " : "; ";
    text += name_of_deadlocked(trace, stuck.thread) + " waits";
    if (stuck.site < trace.sites.size()) text += " at " + to_string(trace.sites[stuck.site].name);
    text += stuck.held_by ? " for " + name_of_deadlocked(trace, *stuck.held_by)
                          : " for what nobody is left to do";
  }
  return text;
}

}  // namespace unflake
