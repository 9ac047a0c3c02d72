#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/trace.h"

namespace unflake {

// One time that code asked for, and what became of it.
struct TimedVisit {
  enum class End { ran_out, early, not_known };

  uint32_t site = no_index;    // valid
  uint32_t thread = no_index;  // that asked; as the call has it
  int64_t asked_ns = 0;        // more than none, less than forever
  End end = End::not_known;
  Duration length{};  // until it was over; of an interval, for the last time
  Duration spent{};   // of that waiting
  uint32_t stack = no_index;
  // Whether something was waited for: a sleep, a timer or a poll of no descriptor only lets time
  // pass.
  bool could_end_early = false;
};

// All of one run. A wait that was made again for the rest of its time is one visit. What a call
// arms, as a socket's time-out or a timer's file, is judged by what happens to the descriptor.
std::vector<TimedVisit> timed_visits(const Trace& trace);

// What was meant by a time that was asked for once: a deadline is met with a little less.
Duration meant_time(int64_t asked_ns);

// Of runs under the agent with calls, most time spent first. A wait that was made again for the
// rest of its time (a notified condition whose predicate does not hold yet) counts as one.
std::vector<TimeValue> time_values(std::span<const Trace* const> runs);

}  // namespace unflake
