#pragma once

#include <time.h>

#include "agent/schedule/participants.h"
#include "agent/schedule/scheduler.h"
#include "agent/schedule/virtual_clock.h"

// What the files of this room share, in the memory of the run: all processes that it controls take
// turns. Only who holds the baton touches it, but for what is shared.
namespace unflake::agent {

struct Timer {
  bool is_set;
  TimerKind kind;
  uint32_t process;
  uint64_t id;
  int64_t deadline;
  int64_t interval;
};
inline constexpr uint32_t most_timers = 256;
inline constexpr clockid_t most_clocks = 12;
inline constexpr uint32_t most_own_paths = 256;

struct State {
  Participant threads[protocol::most_scheduled_threads];
  uint32_t candidates[protocol::most_scheduled_threads];
  protocol::Shared<uint32_t> used;  // of `threads`; it may run past their room
  uint32_t first;                   // all before it have ended
  uint32_t candidate_count;
  protocol::Shared<uint32_t> holder;  // its number, with `deciding` or without
  protocol::Shared<uint32_t> dying;   // a thread that has ended but is still there
  protocol::Shared<uint32_t> dying_process;
  protocol::Shared<uint32_t> starting;  // programs that are not written down yet
  uint32_t left_by;                     // the last thread of a process that has left its turn
  uint32_t round;                       // of questions to other processes
  bool has_processes;                   // more than one
  uint32_t next_decision;
  uint32_t exit_decisions;
  uint32_t timers_used;  // after these none is set
  Timer timers[most_timers];
  int64_t clocks_began[most_clocks];
  uint64_t own_ports[1024];  // of all sockets of the run, a bit for each
  uint64_t own_paths[most_own_paths];
  uint32_t own_path_count;
  bool has_outside_peers;
  protocol::Dice program_dice;
  protocol::Sampler sampler;
};
static_assert(sizeof(State) <= protocol::turns_size * sizeof(uint64_t));

extern State* state;
extern protocol::ScheduleTables tables;
extern uint32_t own_process;  // its id

inline constexpr uint32_t deciding = 0x80000000;  // the holder is not to be disturbed
inline constexpr uint32_t nobody = protocol::none & ~deciding;

inline uint32_t thread_count() {
  const uint32_t used = state->used.load();
  return used < protocol::most_scheduled_threads ? used : protocol::most_scheduled_threads;
}

inline bool is_own(const Participant& thread) {
  return thread.process.load() == own_process;
}

template <class Use>
void for_each_living(Use use) {
  for (uint32_t i = state->first; i < thread_count(); ++i)
    if (state->threads[i].life == Life::lives) use(state->threads[i]);
}

template <class Test>
Participant* find_living(Test test) {
  for (uint32_t i = state->first; i < thread_count(); ++i)
    if (state->threads[i].life == Life::lives && test(state->threads[i])) return &state->threads[i];
  return nullptr;
}

inline protocol::ControlReport& control() {
  return tables.control[0];
}

}  // namespace unflake::agent
