#pragma once

#include <stdint.h>

#include "protocol/schedule_protocol.h"

// The shared memory of this run, once it is mapped.
namespace unflake::agent {

// Maps the memory that `name` ("GENERATION:PATH") names. Without one, or with one of another
// version, the agent stays out of the way: hooks pass through and there are no probes.
bool attach(const char* name);

namespace detail {
extern const protocol::Header* header;
extern protocol::Tables tables;
extern bool scheduled;
extern protocol::Quiescence* quiescence;
}  // namespace detail

inline bool attached() {
  return detail::header != nullptr;
}
inline const protocol::Plan& plan() {
  return detail::header->plan;
}
// All of them were checked when the memory was mapped.
inline const protocol::Tables& memory() {
  return detail::tables;
}
// Whether the plan has a schedule, and where.
inline bool is_scheduled() {
  return detail::scheduled;
}
bool find_schedule(protocol::ScheduleTables& tables);
// nullptr: nobody looks at the test from outside.
inline protocol::Quiescence* quiescence() {
  return detail::quiescence;
}
// A signal will come from the system that nobody sees from outside.
inline void signal_timer_was_set() {
  if (quiescence() != nullptr) quiescence()->timers.add(1);
}
inline const char* plan_text(uint32_t offset) {
  return memory().text.first + offset;
}

// Nothing is reported any more. The memory stays where it is.
void let_go();

// Room for one more event of this thread, its oldest overwritten when there is no other; nullptr:
// the thread has no room at all. Lost events are counted.
protocol::Event* next_event();

}  // namespace unflake::agent
