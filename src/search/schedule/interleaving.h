#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace unflake {

// Something that a thread did between two switch points of a controlled run, or is about to do.
struct ThreadAccess {
  ThreadNumber thread = 0;
  uint32_t site = no_index;
  uint64_t object = 0;
  bool writes = false;
  uint64_t nth = 0;  // of its thread, from 1
  size_t point = 0;  // at which it was chosen
  uint32_t stack = no_index;
  bool is_start = false;
};

// What an access to the object may touch: two descriptors can be the ends of one pipe or socket.
uint64_t shared_part(uint64_t object);

// Whether the order of the two can matter.
bool is_conflict(const ThreadAccess& a, const ThreadAccess& b);

// What every thread is about to do, as a run goes on from point to point.
class PendingAccesses {
 public:
  void arrive(const SwitchPoint& point);
  // A thread that has not arrived anywhere yet is about to start.
  ThreadAccess of(ThreadNumber thread) const;

 private:
  std::map<ThreadNumber, ThreadAccess> pending_;
};

// What was done, in the order in which it was: one for each point.
std::vector<ThreadAccess> executed_accesses(const ControlledRun& run);

// Who would go on if nobody interfered: the one that has arrived, else the lowest number.
ThreadNumber undisturbed_choice(const SwitchPoint& point);
bool can_stay(const SwitchPoint& point);

// Tells runs apart that differ in the order of two accesses which conflict, and no others: a hash
// of the partial order (Mazurkiewicz's trace).
class OrderHash {
 public:
  void add(const ThreadAccess& access);
  uint64_t value() const { return sum_; }

 private:
  struct Event {
    ThreadNumber thread = 0;
    uint64_t nth = 0;
  };
  struct ObjectState {
    std::optional<Event> write;
    std::vector<Event> reads;  // since then
  };
  static uint64_t mixed(uint64_t hash, const Event& event);

  uint64_t sum_ = 0;
  std::map<uint64_t, ObjectState> objects_;
  std::map<ThreadNumber, uint64_t> last_of_;  // every thread's last event on an object
  std::optional<Event> barrier_;              // the last one that may have touched anything
};

// What a set of runs has shown of the orders in which a test can happen.
class ScheduleCoverage {
 public:
  // Whether the run showed an order that no other did.
  bool add(const Trace& trace);

  // Two places, each in a thread, whose accesses conflict and could come in either order.
  size_t pairs() const { return pairs_.size(); }
  size_t pairs_in_both_orders() const;
  size_t orders() const { return orders_.size(); }
  size_t orders_seen_once() const;
  uint64_t runs() const { return runs_; }
  uint64_t runs_since_new() const { return since_new_; }
  uint64_t runs_since_new_pair() const { return since_new_pair_; }

 private:
  using Pair = std::pair<uint32_t, uint32_t>;
  uint32_t place_of(const Trace& trace, uint32_t site);
  bool add_pairs(const Trace& trace);

  std::map<SiteName, uint32_t> places_;
  std::map<Pair, int> pairs_;  // bit 0: the first one came first; bit 1: the other one did
  std::map<uint64_t, uint64_t> orders_;
  uint64_t runs_ = 0;
  uint64_t since_new_ = 0;
  uint64_t since_new_pair_ = 0;
};

}  // namespace unflake
