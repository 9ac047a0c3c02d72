#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "agent/hooks/time_values.h"
#include "agent/real.h"
#include "agent/record/visit.h"

namespace unflake::agent {

using protocol::Api;

namespace {

bool ran_out(int result) {
  return result == ETIMEDOUT;
}
bool ran_out_by_errno(int result) {
  return result != 0 && errno == ETIMEDOUT;
}
// How these calls say it.
int ran_out() {
  return ETIMEDOUT;
}
int ran_out_by_errno() {
  errno = ETIMEDOUT;
  return -1;
}

// With an error the mutex may not be ours.
pthread_mutex_t* held_after(int result, pthread_mutex_t* mutex) {
  return result == 0 || result == ETIMEDOUT ? mutex : nullptr;
}

pthread_mutex_t* as_mutex(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* as_condition(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

int as_c11(int result) {
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}

// pthread_condattr_setclock leaves its mark here.
clockid_t clock_of(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

}  // namespace

PLAIN_HOOK(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_spin_trylock, (pthread_spinlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), word(lock))
PLAIN_HOOK(int, mtx_lock, (mtx_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, mtx_trylock, (mtx_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, mtx_unlock, (mtx_t * mutex), (mutex), word(mutex))
PLAIN_HOOK(int, sem_wait, (sem_t * semaphore), (semaphore), word(semaphore))
PLAIN_HOOK(int, sem_trywait, (sem_t * semaphore), (semaphore), word(semaphore))
PLAIN_HOOK(int, sem_post, (sem_t * semaphore), (semaphore), word(semaphore))
PLAIN_HOOK(int, pthread_once, (pthread_once_t * once, void (*routine)()), (once, routine),
           word(once))

// A lock with a deadline on a clock that the API fixes.
#define TIMED_LOCK(name, type, clock, out)                                            \
  HOOK(int, name, (type * lock, const timespec* deadline)) {                          \
    const Subject subject = until(word(lock), clock, deadline);                       \
    Visit visit(Api::name, CALLER, subject);                                          \
    Turn turn(visit, subject);                                                        \
    if (turn.timed_out()) return visit.leave(out(), true);                            \
    timespec room;                                                                    \
    const int result = real::name(lock, absolute_time(visit, clock, deadline, room)); \
    return visit.leave(result, out(result));                                          \
  }
#define CLOCKED_LOCK(name, type, out)                                                        \
  HOOK(int, name, (type * lock, clockid_t clock, const timespec* deadline)) {                \
    const Subject subject = until(word(lock), clock, deadline);                              \
    Visit visit(Api::name, CALLER, subject);                                                 \
    Turn turn(visit, subject);                                                               \
    if (turn.timed_out()) return visit.leave(out(), true);                                   \
    timespec room;                                                                           \
    const int result = real::name(lock, clock, absolute_time(visit, clock, deadline, room)); \
    return visit.leave(result, out(result));                                                 \
  }

TIMED_LOCK(pthread_mutex_timedlock, pthread_mutex_t, CLOCK_REALTIME, ran_out)
CLOCKED_LOCK(pthread_mutex_clocklock, pthread_mutex_t, ran_out)
TIMED_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t, CLOCK_REALTIME, ran_out)
CLOCKED_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t, ran_out)
TIMED_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t, CLOCK_REALTIME, ran_out)
CLOCKED_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t, ran_out)
TIMED_LOCK(sem_timedwait, sem_t, CLOCK_REALTIME, ran_out_by_errno)
CLOCKED_LOCK(sem_clockwait, sem_t, ran_out_by_errno)

HOOK(int, pthread_barrier_wait, (pthread_barrier_t * barrier)) {
  if (passes(Api::pthread_barrier_wait, CALLER)) return real::pthread_barrier_wait(barrier);
  Visit visit(Api::pthread_barrier_wait, CALLER, {word(barrier)});
  return visit.leave(is_controlled() ? wait_at_barrier(visit, barrier)
                                     : real::pthread_barrier_wait(barrier));
}

HOOK(int, mtx_timedlock, (mtx_t * mutex, const timespec* deadline)) {
  const Subject subject = until(word(mutex), CLOCK_REALTIME, deadline);
  Visit visit(Api::mtx_timedlock, CALLER, subject);
  Turn turn(visit, subject);
  if (turn.timed_out()) return visit.leave(static_cast<int>(thrd_timedout), true);
  timespec room;
  const int result =
      real::mtx_timedlock(mutex, absolute_time(visit, CLOCK_REALTIME, deadline, room));
  return visit.leave(result, result == thrd_timedout);
}

HOOK(void, call_once, (once_flag * flag, void (*routine)())) {
  Visit visit(Api::call_once, CALLER, {word(flag)});
  Turn turn(visit, {word(flag)});
  real::call_once(flag, routine);
  visit.leave(0);
}

// Two versions of the condition variables exist; only the newer ones are today's.
#define CONDITION_VERSION "GLIBC_2.3.2"

// A controlled run has its own lists of who waits. The real call is made too, for those of other
// processes.
#define WAKE_HOOK(define, name, type, count)                     \
  define {                                                       \
    if (passes(Api::name, CALLER)) return real::name(condition); \
    Visit visit(Api::name, CALLER, {word(condition)});           \
    Turn turn(visit, {word(condition)});                         \
    wake_condition(condition, count);                            \
    return visit.leave(real::name(condition));                   \
  }

WAKE_HOOK(HOOK(int, cnd_signal, (cnd_t * condition)), cnd_signal, cnd_t, 1)
WAKE_HOOK(HOOK(int, cnd_broadcast, (cnd_t * condition)), cnd_broadcast, cnd_t, UINT_MAX)
WAKE_HOOK(HOOK_VERSION(int, pthread_cond_signal, (pthread_cond_t * condition), CONDITION_VERSION),
          pthread_cond_signal, pthread_cond_t, 1)
WAKE_HOOK(HOOK_VERSION(int, pthread_cond_broadcast, (pthread_cond_t * condition),
                       CONDITION_VERSION),
          pthread_cond_broadcast, pthread_cond_t, UINT_MAX)

HOOK_VERSION(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
             CONDITION_VERSION) {
  Visit visit(Api::pthread_cond_wait, CALLER, {word(condition)});
  const int result = is_controlled() ? wait_for_condition(visit, condition, mutex, {})
                                     : real::pthread_cond_wait(condition, mutex);
  return visit.leave(result, false, held_after(result, mutex));
}

HOOK_VERSION(int, pthread_cond_timedwait,
             (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* deadline),
             CONDITION_VERSION) {
  const clockid_t clock = clock_of(condition);
  const Subject subject = until(word(condition), clock, deadline);
  Visit visit(Api::pthread_cond_timedwait, CALLER, subject);
  timespec room;
  const int result = models(subject)
                         ? wait_for_condition(visit, condition, mutex, subject)
                         : real::pthread_cond_timedwait(
                               condition, mutex, absolute_time(visit, clock, deadline, room));
  if (visit.other_deadline() >= 0)
    foresee_looks(clock, to_ns(*deadline), visit.other_deadline(), ran_out(result), 1);
  return visit.leave(result, ran_out(result), held_after(result, mutex));
}

HOOK(int, pthread_cond_clockwait,
     (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock,
      const timespec* deadline)) {
  const Subject subject = until(word(condition), clock, deadline);
  Visit visit(Api::pthread_cond_clockwait, CALLER, subject);
  timespec room;
  const int result =
      models(subject) ? wait_for_condition(visit, condition, mutex, subject)
                      : real::pthread_cond_clockwait(condition, mutex, clock,
                                                     absolute_time(visit, clock, deadline, room));
  if (visit.other_deadline() >= 0)
    foresee_looks(clock, to_ns(*deadline), visit.other_deadline(), ran_out(result), 1);
  return visit.leave(result, ran_out(result), held_after(result, mutex));
}

HOOK(int, cnd_wait, (cnd_t * condition, mtx_t* mutex)) {
  Visit visit(Api::cnd_wait, CALLER, {word(condition)});
  const int result =
      is_controlled()
          ? as_c11(wait_for_condition(visit, as_condition(condition), as_mutex(mutex), {}))
          : real::cnd_wait(condition, mutex);
  return visit.leave(result, false, result == thrd_success ? as_mutex(mutex) : nullptr);
}

HOOK(int, cnd_timedwait, (cnd_t * condition, mtx_t* mutex, const timespec* deadline)) {
  const Subject subject = until(word(condition), CLOCK_REALTIME, deadline);
  Visit visit(Api::cnd_timedwait, CALLER, subject);
  timespec room;
  const int result =
      models(subject)
          ? as_c11(wait_for_condition(visit, as_condition(condition), as_mutex(mutex), subject))
          : real::cnd_timedwait(condition, mutex,
                                absolute_time(visit, CLOCK_REALTIME, deadline, room));
  const bool held = result == thrd_success || result == thrd_timedout;
  return visit.leave(result, result == thrd_timedout, held ? as_mutex(mutex) : nullptr);
}

}  // namespace unflake::agent
