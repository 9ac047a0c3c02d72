#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// What a thread may do at a place without asking further.
enum class Mode : uint16_t {
  pass,  // counted, and nothing else
  turn,  // the same, but not before it is this thread's turn
  act,   // rules, events or the time waited are due
  walk,  // the caller is a wrapper: its caller decides
};

enum class Stage : uint8_t { unmet, lives, ended };

// Why a thread writes over its own events.
enum class Wraps : uint8_t { none, burst, for_lack_of_room };

struct SpawnCount {
  uint64_t place;
  uint32_t count;
};

// A thread that is about to begin.
struct Birth {
  uint64_t name = 0;
  uint64_t thread_class = 0;
  uint32_t parent = protocol::none;
  uint32_t stack = protocol::none;
  uint32_t ordinal = 0;
};

struct StackSnapshot {
  uint32_t count;
  uint64_t frames[protocol::deepest_stack];
};

// Where a hooked call comes from.
struct Caller {
  const void* address;  // to which it returns
  const void* frame;    // above the word on the stack that says so
};

// A stack that was unwound before, with the place of every return address on it.
struct KnownStack {
  StackSnapshot stack;
  uint64_t places[protocol::deepest_stack];
  uint32_t number;         // in the report
  uint32_t closed_images;  // when it was unwound: since then the code may be another
  bool is_numbered;
  bool is_repeatable;
};

// What only some threads need; mapped when first needed.
struct ThreadExtra {
  SpawnCount spawned[128];
  Birth fork_birth;      // of the thread that a fork is about to begin
  StackSnapshot thrown;  // where the last exception was thrown
  const char* thrown_type;
  KnownStack known[16];
};

// A wait whose time the plan has changed and that did not run out. When it is made again for the
// rest of its time, its changed time goes on.
struct ChangedWait {
  int64_t given;  // the deadline, or the rest of a span that the program was given; 0: none
  int64_t other;  // what the plan makes of it
  uint16_t plan_site;
  bool is_span;
};

// A loop may go on with several.
constexpr size_t changed_waits_at_most = 4;

// Of a clock, by the C++ library; see foresee_looks.
struct ForeseenLooks {
  int64_t given_ns;    // the program's deadline
  int64_t changed_ns;  // what the plan makes of it
  uint64_t until_cpu_ns;
  clockid_t clock;
  uint8_t count;
  bool timed_out;
};

// Small: it is in the thread's static TLS, which a thread with a tiny stack pays for.
struct ThreadState {
  protocol::Tally* tallies;  // nullptr: the thread has none, and every visit takes the long way
  ThreadExtra* extra;
  uint64_t name;
  uint64_t thread_class;
  ChangedWait changed_waits[changed_waits_at_most];  // of different sites
  ForeseenLooks looks;
  uintptr_t busy;   // the frame of the agent's code that runs in this thread; 0: none does
  uint32_t number;  // in the report; none: there was no room
  uint32_t chunk;   // that events go to; none: no room for any
  uint32_t chunks_own;
  Stage stage;
  uint8_t changed_wait_to_drop;  // next when there is no room
  Wraps wraps;
  bool chunk_matters;  // something in it does not just repeat
  bool was_late;       // an intervention has delayed it
  bool aborts;         // and that is written down
};

extern constinit thread_local ThreadState this_thread __attribute__((tls_model("initial-exec")));

// A return address belongs to one call instruction, which may call several APIs through a pointer.
inline uint64_t tally_key(protocol::Api api, const void* caller) {
  return reinterpret_cast<uint64_t>(caller) ^ (static_cast<uint64_t>(api) << protocol::offset_bits);
}

inline size_t tally_slot(uint64_t key) {
  return (key ^ (key >> 8) ^ (key >> protocol::offset_bits)) % protocol::tallies_per_thread;
}

// The short way through a hook: a place that this thread knows and where there is nothing to do.
inline bool passes(protocol::Api api, const Caller& caller) {
  protocol::Tally* tallies = this_thread.tallies;
  if (tallies == nullptr) return false;
  const uint64_t key = tally_key(api, caller.address);
  protocol::Tally& tally = tallies[tally_slot(key)];
  if (tally.key != key || tally.mode != static_cast<uint16_t>(Mode::pass)) return false;
  tally.visits.add_alone(1);
  return true;
}

// The agent's own code must not be entered again by a signal handler that interrupts it. A handler
// that leaves with longjmp never comes back to end the guard; it is then below the stack pointer.
class Guard {
 public:
  Guard() : frame_(reinterpret_cast<uintptr_t>(__builtin_frame_address(0))) {
    const uintptr_t busy = this_thread.busy;
    entered_ = busy == 0 || busy < frame_;
    if (entered_) this_thread.busy = frame_;
  }
  ~Guard() {
    if (entered_) this_thread.busy = 0;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  const uintptr_t frame_;
  bool entered_;
};

// While the agent only sleeps, a signal handler may visit sites as ever, and leave with longjmp.
class Unguarded {
 public:
  Unguarded() : busy_(this_thread.busy) { this_thread.busy = 0; }
  ~Unguarded() { this_thread.busy = busy_; }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

 private:
  const uintptr_t busy_;
};

// Called as the last thing when a thread ends; nullptr: nothing is.
extern void (*at_thread_end)();

// Maps this thread's extra memory when it has none yet; nullptr: there is no memory.
ThreadExtra* thread_extra();

// Makes this thread known, when it is not yet; false: the agent has nothing to do with it (any
// more).
bool meet_this_thread();

// The first thread of this process, and what becomes of it when the process forks.
void meet_first_thread();

enum class Titled : uint8_t { living, ended };

// The program calls this one of its threads so; at most the 15 bytes that the system keeps count.
// One that is said to live may not have begun, and has one of those that ended before it as handle.
void title_thread(pthread_t handle, const char* title, Titled titled);

// Names a thread that this one is about to start, or to become by a fork.
Birth name_child();
void meet_child(const Birth& birth);

}  // namespace unflake::agent
