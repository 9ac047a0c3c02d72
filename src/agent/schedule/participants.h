#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdint.h>

#include "protocol/schedule_protocol.h"

namespace unflake::agent {

// What a thread waits for before it can do its next step. Most are questions to the real object,
// asked at each decision, so that it does not matter who has changed it.
enum class Wait : uint8_t {
  nothing,
  mutex,
  spin_lock,
  reader,  // of a rwlock
  writer,
  semaphore,
  once,
  thread,       // its end
  descriptors,  // one of them
  child,        // a process
  signal,       // one of `signals` is pending
  handler,      // the program's own has run
  sleep,        // the deadline and nothing else
  condition,    // these three: until another thread wakes it
  barrier,
  futex,
  held,          // by the plan, until a rule was matched: `id` is the one that holds it
  late_threads,  // until none lives that the plan has made late
  outside,       // it is out of sight until it comes back by itself
};

inline constexpr int64_t forever = INT64_MAX;

struct Step {
  Wait wait;
  bool writes;
  bool may_switch;  // a call of project code: another thread may go first
  bool exits;       // the process
  bool yields;
  uint16_t api;     // no_api: none
  uint32_t site;    // none: no call of project code
  uint32_t stack;   // + 1, of a memory access when races are watched; 0: none
  uint64_t object;  // as the trace names it
  const volatile void* address;
  pthread_mutex_t* mutex;  // of a condition
  pollfd* descriptors;
  uint32_t descriptor_count;
  int32_t id_type, id, options;  // of a child; `id` is the number of a thread to join, or of a rule
  uint64_t queue;                // of a condition, a barrier or a futex: who wakes names the same
  uint64_t signals;              // as the kernel has them
  int64_t deadline;              // in virtual time
};
inline constexpr uint16_t no_api = 0xffff;

enum class Life : uint8_t { unborn, lives, ended };

// What `turn` says.
enum TurnWord : uint32_t {
  not_its_turn = 0,
  has_turn = 1,
  is_asked = 2,      // which threads of its process could go on
  is_to_decide = 3,  // who goes on, once a process that has left its turn is gone
};

// A thread of a controlled process, in the memory that all processes of the run share: addresses in
// it mean something to its own process alone. Only who holds the baton touches it, but for the
// words that are shared.
struct Participant {
  protocol::Shared<uint32_t> turn;      // a futex, a TurnWord
  protocol::Shared<uint32_t> returned;  // it was out of sight and wants to take part again
  protocol::Shared<uint32_t> tid;
  protocol::Shared<uint32_t> process;  // its id
  uint32_t number;
  uint32_t told_in;  // the round in which its process was last asked about it
  uint32_t blocker;  // who has what it waits for, as its process has told
  pthread_t handle;
  Step next;
  int64_t timer;         // of its descriptors the next to go off, as its process has told
  uint64_t waits_since;  // the count of steps: who waits longest is woken first
  int64_t enabled_since;
  int64_t late_until;  // by the plan, at the latest; 0: it was not made late
  Life life;
  bool joined;
  bool woken;
  bool timed_out;
  bool interrupted;
  bool is_ready;  // these two: as its process has told
  bool may_time_out;
  bool is_expected;   // a program that has not begun yet
  bool is_skipped;    // it has yielded, and nobody has done anything since
  uint32_t yields;    // in a row
  uint32_t handlers;  // of signals that it has run
  char program[32];   // that it was to become, as its first argument says
};

}  // namespace unflake::agent
