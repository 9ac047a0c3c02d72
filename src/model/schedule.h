#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/site.h"
#include "util/time.h"

namespace unflake {

// Threads of a controlled run are numbered as they were created: under the same decisions that is
// the same in every run, across processes too.
using ThreadNumber = uint32_t;

// Who goes on at the next switch points, unless told otherwise.
enum class Sampler {
  stay,         // the running thread, as long as it can; then the one with the lowest number
  random_walk,  // any enabled thread, all alike
  pct,          // the highest of random priorities, which fall at `depth` - 1 random points
  pos,          // the highest of random numbers, drawn anew where two conflict
  surw,         // uniform over the interleavings of selected accesses
};

std::string_view to_string(Sampler sampler);
std::optional<Sampler> sampler_from(std::string_view name);

// An exchange: at switch point number `point` of the run, this thread goes on.
struct Decision {
  uint64_t point = 0;
  ThreadNumber thread = 0;
  bool operator==(const Decision&) const = default;
};

// An instruction with more visits than that in a run is a switch point at its first ones only.
inline constexpr uint32_t visits_of_hot_access = 100'000;
inline constexpr uint32_t exchanges_at_hot_access = 1'000;

// How a controlled run is to go. The same schedule gives the same run.
struct Schedule {
  Sampler sampler = Sampler::stay;
  uint64_t seed = 1;
  int depth = 3;                    // of pct
  uint64_t length = 0;              // switch points to expect, for pct; 0: not known
  std::vector<Decision> decisions;  // these first; the sampler decides what they do not
  std::vector<uint64_t> selected;   // of surw: objects whose accesses count; empty: all
  std::vector<uint64_t> remaining;  // of surw: how many of those each thread will make
  Duration stall{};  // for how long a thread that could go on may be passed over while time passes
  std::vector<SiteName>
      accesses;                // instructions that touch shared memory and are switch points too
  bool find_accesses = false;  // look for more of those, which makes the run slow
  // Of `accesses`: those at whose first visits alone threads are exchanged, because there are very
  // many.
  std::vector<SiteName> hot_accesses;
  bool watch_races = false;  // accesses have stacks, and freed memory is not used again
};

// "schedule pos:7"; "schedule 12:2, 40:1 up to 5ms late" for decisions of its own, which is also
// different for different schedules.
std::string to_string(const Schedule& schedule);

// Objects of accesses that touch nothing which another thread could see, such as a start or a
// sleep, and of those that may touch anything.
inline constexpr uint64_t no_object = 0;
// Bits of objects that are no memory: a thread's number, a descriptor's.
inline constexpr uint64_t thread_object = uint64_t{1} << 61;
inline constexpr uint64_t descriptor_object = uint64_t{1} << 62;
inline constexpr uint64_t any_object = ~uint64_t{0};

// A moment at which another thread could have gone on.
struct SwitchPoint {
  ThreadNumber thread = 0;            // that was about to do this
  uint32_t site = 0xffffffff;         // of the trace; none at a thread's start and end
  uint64_t object = 0;                // the same number for the same object under the same schedule
  bool writes = true;                 // else it only reads: two reads are independent
  std::vector<ThreadNumber> enabled;  // in ascending order
  ThreadNumber chosen = 0;            // one of them
  uint32_t stack = 0xffffffff;        // of the trace; of accesses, when races are watched
  // Where threads may be stalled: those of `enabled` that need no time to pass before they go on.
  std::vector<ThreadNumber> ready{};
  Duration at{};  // virtual, since the run began
};

// Whether an access is made as an atomic one: the instruction or the code around it says so.
struct AccessInstruction {
  uint32_t site = 0xffffffff;  // of the trace
  uint8_t size = 0;            // bytes
  bool reads = false;
  bool writes = false;
  bool is_atomic = false;
};

// A variable that has one place as long as the program runs, or the part of one that is there.
struct SharedVariable {
  uint64_t address = 0;  // that was touched
  std::string name;      // "seats", "Pool::instance_", "ring.head_"
  std::string type;      // empty: not known
  bool is_atomic = false;
};

// A thread that waits forever, for an object that another one of them holds, or that nobody is
// left to give.
struct DeadlockedThread {
  ThreadNumber thread = 0;
  uint32_t site = 0xffffffff;
  uint64_t object = 0;
  std::optional<ThreadNumber> held_by;
};

// What a controlled run says about itself.
struct ControlledRun {
  uint64_t digest = 0;              // of all decisions: equal for equal runs
  std::vector<SwitchPoint> points;  // the first ones of a very long run
  std::vector<uint32_t> threads;    // by number: which one of the trace it is
  uint64_t points_in_all = 0;
  uint64_t switches = 0;
  std::vector<DeadlockedThread> deadlock;  // empty: none
  // When asked for: by several threads, one of which writes, without a lock that all of them hold.
  std::vector<SiteName> shared_accesses;
  uint64_t guarded_accesses = 0;                // instructions that such a lock has kept out
  std::vector<SiteName> hot_accesses;           // of `shared_accesses`: with very many visits
  std::vector<AccessInstruction> instructions;  // those of the schedule, when races are watched
  std::vector<SharedVariable> variables;        // ordered by address, when races are watched
  Duration virtual_time{};                      // that the test saw pass
  // Empty: the same schedule gives the same run. Else the call because of which it may not.
  std::string not_repeatable;
};

// This thread, at its nth visit of a site, waits until the other one has passed another site as
// often as it says.
struct OrderConstraint {
  ThreadNumber thread = 0;
  SiteName site;
  uint64_t visit = 1;
  ThreadNumber other = 0;
  SiteName other_site;
  uint64_t other_visit = 1;
  bool operator==(const OrderConstraint&) const = default;
};

}  // namespace unflake
