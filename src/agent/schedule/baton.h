#pragma once

#include "agent/schedule/state.h"

namespace unflake::agent {

void give_to(Participant& next);
// The process of the one who calls ends: somebody else decides who goes on once it is gone.
void leave_turn_to_others(const Participant& me);
void wait_for_turn(Participant& me);

// Asks processes other than this one which of their threads could go on; what they tell is written
// at the threads.
void ask_other_processes();
// One of them, for whatever its threads wait; false: nobody there can answer.
bool ask_process(uint32_t process);

// What the system tells in such a file, ended by 0; its length, -1: there is none.
long read_facts(const char* path, char* text, size_t size);

bool has_lived(uint32_t process);               // under control
char state_of(uint32_t process, uint32_t tid);  // as ps shows it; '?': it is not there
bool is_gone(uint32_t process);
// Masks of a thread, as the kernel has them.
struct SignalFacts {
  uint64_t pending, blocked, caught, ignored;
};
bool read_signal_facts(uint32_t process, uint32_t tid, SignalFacts& facts);

// Its threads are no more.
void bury(uint32_t process);

// Between the two the thread may touch what belongs to the holder.
void enter(Participant& me);
void leave(Participant& me);

inline bool is_deciding(const Participant& me) {
  return state->holder.load() == (me.number | deciding);
}

}  // namespace unflake::agent
