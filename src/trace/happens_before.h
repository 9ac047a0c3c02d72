#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan.h"
#include "model/trace.h"

namespace unflake {

// What data/timing-apis.toml says about the call; null for a line or a function.
const protocol::ApiFacts* facts_of(const TracedSite& site);

// What a call can do (protocol::ApiTraits), and those of its group (protocol::GroupTraits). A line
// or a function can do nothing.
uint16_t api_traits(const TracedSite& site);
uint16_t group_traits(const TracedSite& site);
bool may_wait(const TracedSite& site);
bool takes_time(const TracedSite& site);
bool can_wake(const TracedSite& site);
bool waits_for_signal(const TracedSite& site);  // and gives its lock back until then

bool closes(const TracedSite& site);  // a descriptor
bool joins(const TracedSite& site);   // waits for the end of a thread
bool makes_thread(const TracedSite& site);
bool makes_process(const TracedSite& site);

bool is_sleep(const TracedSite& site);
bool is_lock(const TracedSite& site);  // taken or given back
bool is_unlock(const TracedSite& site);
bool lets_one_in(const TracedSite& site);  // of several that ask: a lock, or what is done once
std::string_view drawn_as(const TracedSite& site);  // in a timeline

// Whether only somebody else could end this wait.
bool is_untimed_wait(const TracedSite& site, const TracedCall& call);

inline constexpr size_t no_call = static_cast<size_t>(-1);

// For each thread the call of its creator (pthread_create, fork ...) that began it. The stack from
// which it was created gives the call, or else its name the line; the n-th of a name is of the n-th
// such call. When it first ran says less, because later ones may have overtaken it.
std::vector<size_t> find_creations(const Trace& trace);

// The base name of the program that the thread runs in, as an intervention wants it.
std::string executable_of(const Trace& trace, const TracedThread& thread);

// Which calls of a trace come before which, whoever is late. Only hard edges count: creation,
// join, a signal and the untimed wait that it ended, a post and the untimed acquire, an exit and
// the wait for it. A sleep or a timed wait orders only as long as nobody is late, and who took a
// mutex first is not an order at all.
class HappensBefore {
 public:
  explicit HappensBefore(const Trace& trace);

  // Whether `second` cannot begin (or end) unless `first` has begun. Both are numbers of calls.
  bool before_begin(size_t first, size_t second) const;
  bool before_end(size_t first, size_t second) const;

 private:
  using Clock = std::vector<uint32_t>;  // for each other thread, how many of its calls have begun

  // What a thread has learned by some time. It rarely learns anything about others, so all calls
  // between two such times share a clock.
  struct Stamp {
    uint32_t clock = no_index;
    uint32_t own = 0;  // calls of the thread itself that have begun
  };

  bool knows(const Stamp& stamp, uint32_t thread, size_t call) const;

  const Trace& trace_;
  std::vector<uint32_t> ordinal_;  // of a call in its thread
  std::vector<Stamp> begin_, end_;
  std::vector<Clock> clocks_;

  friend class EdgeReplay;
};

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
