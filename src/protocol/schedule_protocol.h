#pragma once

#include "protocol/agent_protocol.h"
#include "protocol/samplers.h"

// The tables of a controlled run, in which one thread runs at a time and the agent decides which.
// Without a schedule they have no room.
namespace unflake::protocol {

// --- The plan's ---

struct SchedulePlan {
  SamplerKind sampler;
  uint32_t depth;
  uint64_t seed;
  uint64_t length;
  uint64_t stall_ns;
  uint32_t finds_accesses;  // which ones are shared, instead of exchanging threads there
  uint32_t watches_races;   // accesses have stacks, and no memory is given out twice
};

// At this switch point this thread goes on, if it can. Ordered by point.
struct PlannedDecision {
  uint64_t point;
  uint32_t thread;
  uint32_t unused;
};

enum AccessFlags : uint8_t {
  access_reads = 1,
  access_writes = 2,
  access_is_atomic = 4,  // though it does both
  access_in_image = 8,   // `displacement` is an address as the ELF file gives it
  access_is_hot = 16,    // threads are exchanged at its first visits only
  access_is_known = 32,  // threads are exchanged there, also while others are looked for
};
inline constexpr uint32_t hot_after = 100'000;      // visits in a run
inline constexpr uint32_t visits_when_hot = 1'000;  // at which threads are exchanged
inline constexpr uint8_t no_register = 0xff;

// An instruction that touches memory at base + index * scale + displacement. Registers are numbered
// as instructions do it.
struct PlanAccess {
  int64_t displacement;
  uint8_t base;
  uint8_t index;
  uint8_t scale;
  uint8_t size;
  uint8_t flags;
  uint8_t unused[3];
};

// What an access was seen to do, as bits.
inline constexpr uint32_t access_is_shared = 1;
inline constexpr uint32_t access_was_hot = 2;
inline constexpr uint32_t access_is_guarded = 4;  // it would be shared, but for a lock of all

// --- The report's, written by the thread that runs ---

struct ControlReport {
  Shared<uint32_t> state;  // 0: no process was controlled, 1: one was, 2: it refused
  Shared<uint32_t> left;   // 1: `reason` says what left the control
  Shared<uint64_t> digest;
  Shared<uint64_t> points;  // those that had no room in `switch_points` too
  Shared<uint64_t> switches;
  Shared<uint64_t> steps;  // that were announced, also where there was nothing to choose
  Shared<uint64_t> virtual_ns;
  Shared<uint64_t> taken;      // how often the baton was taken from a thread out of sight
  Shared<uint32_t> deadlocks;  // threads in `deadlocked`; 0: there was no deadlock
  uint32_t unused;
  char reason[160];
};

// In `enabled`: this thread needs no time to pass before it can go on. Known where threads may be
// stalled.
inline constexpr uint16_t enabled_is_ready = 0x8000;

struct ScheduledPoint {
  uint64_t object;
  uint32_t site;           // in `sites`; none: no call of project code
  uint32_t first_enabled;  // in `enabled`; none: there was no room
  uint16_t enabled_count;
  uint16_t thread;
  uint16_t chosen;
  uint16_t writes;
  // When races are watched: where the object is, and from where it is touched.
  Address place;
  uint32_t stack;    // none: not known
  uint32_t time_us;  // virtual, since control began
};

struct StuckThread {
  uint64_t object;
  uint32_t thread;
  uint32_t site;
  uint32_t held_by;  // none: nobody
  uint32_t unused;
};

struct ScheduleTables {
  Elements<const SchedulePlan> schedule;
  Elements<const PlannedDecision> decisions;
  Elements<const uint64_t> selected;
  Elements<const uint64_t> remaining;
  Elements<ControlReport> control;
  Elements<ScheduledPoint> points;
  Elements<uint16_t> enabled;
  Elements<StuckThread> deadlocked;
  Elements<const PlanAccess> accesses;
  Elements<Shared<uint32_t>> access_states;
  Elements<uint64_t> turns;
};

inline constexpr uint32_t max_switch_points = 16384;
inline constexpr uint32_t max_enabled = 65536;
inline constexpr uint32_t max_deadlocked = 64;
inline constexpr uint32_t turns_size = 5 << 17;  // words; only what is used takes memory

// False: the run is not controlled.
inline bool find_tables(char* base, const Header& header, ScheduleTables& tables) {
  const auto find = [&](TableKind kind, auto& found) {
    return find_table(base, header, kind, found);
  };
  using Kind = TableKind;
  return find(Kind::schedule, tables.schedule) && find(Kind::decisions, tables.decisions) &&
         find(Kind::selected, tables.selected) && find(Kind::remaining, tables.remaining) &&
         find(Kind::control, tables.control) && find(Kind::switch_points, tables.points) &&
         find(Kind::enabled, tables.enabled) && find(Kind::deadlocked, tables.deadlocked) &&
         find(Kind::accesses, tables.accesses) && find(Kind::access_states, tables.access_states) &&
         find(Kind::turns, tables.turns) && tables.access_states.count == tables.accesses.count &&
         tables.schedule.count == 1 && tables.control.count == 1;
}

}  // namespace unflake::protocol
