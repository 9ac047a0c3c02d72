#pragma once

#include "agent/schedule/state.h"

namespace unflake::agent {

void give_to(Participant& next);
void wait_for_turn(Participant& me);

// Between the two the thread may touch what belongs to the holder.
void enter(Participant& me);
void leave(Participant& me);

inline bool is_deciding(const Participant& me) {
  return state->holder.load() == (me.number | deciding);
}

}  // namespace unflake::agent
