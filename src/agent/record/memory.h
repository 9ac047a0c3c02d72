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

// What may be left out where it repeats: who takes a lock first orders nothing, and a look at a
// clock is nothing that anybody waits for.
inline bool orders_nothing(uint16_t api) {
  return api < static_cast<uint16_t>(protocol::Api::count) &&
         (protocol::api_facts[api].group_facts().traits &
          (protocol::group_locks | protocol::group_looks)) != 0;
}
inline constexpr uint64_t short_wait_ns = 50'000;

// Whether an event says something that events of the same place have not said often enough.
enum class Worth : uint8_t { repeats, matters };

// Room for one more event of this thread, its oldest overwritten when there is no other; nullptr:
// the thread has no room at all. Lost events are counted. While all that a thread has to tell
// repeats, it goes round in one chunk, so that the latest remain.
protocol::Event* next_event(Worth worth);

// It did turn out to matter.
void keep_event(const protocol::Event& event);

// How many visits of one place by one thread all matter: fewer when there is less room.
uint64_t visits_that_matter();

}  // namespace unflake::agent
