#pragma once

#include <pthread.h>

#include "agent/record/visit.h"
#include "agent/schedule/scheduler.h"

// Controlled runs as hooks see them.
namespace unflake::agent {

enum class Woken : uint8_t { ready, timed_out, interrupted };

// Whether the call is made in another way than by the real one, which is left to refuse a wrong
// time.
inline bool models(const Subject& subject) {
  return is_controlled() && subject.value != wrong_time;
}

// When the call was made: what follows is the thread's own, and another one may come before it.
void turn_after(const Visit& visit);

// In a controlled run: waits until this thread may make the call that `visit` is about, which does
// not block then. In others it is nothing.
class Turn {
 public:
  Turn(const Visit& visit, const Subject& subject, int flags = 0) {
    if (is_controlled()) take(visit, subject, flags);
  }
  ~Turn() {
    if (is_out_of_sight_) come_back();
    if (released_by_ != nullptr) turn_after(*released_by_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool timed_out() const { return woken_ == Woken::timed_out; }
  bool interrupted() const { return woken_ == Woken::interrupted; }

 private:
  void take(const Visit& visit, const Subject& subject, int flags);

  bool is_out_of_sight_ = false;
  const Visit* released_by_ = nullptr;  // a call after which another thread may go first
  Woken woken_ = Woken::ready;
};

// These stand for the real calls, which would not know about the others' turns.

int wait_for_condition(const Visit& visit, pthread_cond_t* condition, pthread_mutex_t* mutex,
                       const Subject& subject);
void wake_condition(const void* condition, uint32_t count);

int wait_at_barrier(const Visit& visit, pthread_barrier_t* barrier);

// 0 or a negated errno.
long wait_on_futex(const Visit& visit, const uint32_t* word, bool is_shared, uint32_t expected,
                   int64_t span);

// Until one of them is ready.
Woken wait_for_descriptors(const Visit& visit, pollfd* descriptors, uint32_t count, int64_t span,
                           uint64_t object);

// Until a handler of the program has run, with this mask of blocked signals; nullptr: as it is.
void wait_for_handler(const Visit& visit, const sigset_t* mask);
// Until one of these is pending.
Woken wait_for_signal(const Visit& visit, const sigset_t& signals, int64_t span);

Woken wait_for_child(const Visit& visit, int id_type, int id, int options);

// What the plan does to a thread. Being late takes virtual time only.
void be_late_in_turn(int64_t ns);
enum class Held : uint8_t { passed, let_go, impossible };
Held hold_in_turn(const protocol::Rule& hold);
// Of threads that others were given the mutex of meanwhile.
int lock_again(const Visit& visit, pthread_mutex_t* mutex);
// Until no other thread lives that the plan has made late, or so long after the last of them was.
void wait_for_late_threads(int64_t at_most_ns);

// When main has returned, or exit() was called.
void turn_before_exit();
void yield_turn();

}  // namespace unflake::agent
