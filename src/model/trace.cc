#include "model/trace.h"

#include <algorithm>

namespace unflake {

// Less than this is how a deadline is met, and no other time.
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

}  // namespace unflake
