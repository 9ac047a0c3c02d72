#pragma once

#include "agent/schedule/participants.h"
#include "agent/schedule/scheduler.h"

// What the files of this room share. Only who holds the baton touches it, but for what is shared.
namespace unflake::agent {

struct State {
  Participant threads[protocol::most_scheduled_threads];
  uint32_t candidates[protocol::most_scheduled_threads];
  protocol::Shared<uint32_t> used;  // of `threads`; it may run past their room
  uint32_t candidate_count;
  protocol::Shared<uint32_t> holder;  // its number, with `deciding` or without
  protocol::Shared<uint32_t> dying;   // a thread that has ended but is still there
  uint32_t next_decision;
  uint32_t exit_decisions;
  protocol::ScheduleTables tables;
  protocol::Dice program_dice;
  protocol::Sampler sampler;
};

extern State* state;

inline constexpr uint32_t deciding = 0x80000000;  // the holder is not to be disturbed

inline uint32_t thread_count() {
  const uint32_t used = state->used.load();
  return used < protocol::most_scheduled_threads ? used : protocol::most_scheduled_threads;
}

inline protocol::ControlReport& control() {
  return state->tables.control[0];
}

}  // namespace unflake::agent
