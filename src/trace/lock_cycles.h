#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "model/trace.h"

namespace unflake {

// Threads that each hold a lock and take the one that the next of them holds, in a run that went
// well because they did so one after the other.
struct LockCycle {
  // All of them have taken their first lock before any of them takes its second.
  std::vector<Intervention> plan;
  std::string why;
};

// Cycles of two and of three threads, each pair of places once; none that a lock guards which all
// of its threads hold.
std::vector<LockCycle> find_lock_cycles(const Trace& trace);

}  // namespace unflake
