#include "agent/schedule/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"
#include "agent/schedule/accesses.h"
#include "agent/schedule/baton.h"

namespace unflake::agent {
namespace {

using namespace protocol;

// What a call is to the schedule.
struct Manner {
  Wait wait = Wait::nothing;
  bool is_point = true;  // another thread may come before it
  bool writes = true;
  short events = 0;  // of descriptors
  bool yields = false;
};

enum Objects : uint64_t {
  files_object = uint64_t{1} << 60,
  thread_object = uint64_t{1} << 61,
  descriptor_object = uint64_t{1} << 62,
};

Manner manner_of(Api api) {
  switch (api) {
    case Api::pthread_mutex_lock:
    case Api::pthread_mutex_timedlock:
    case Api::pthread_mutex_clocklock:
    case Api::mtx_lock:
    case Api::mtx_timedlock:
      return {Wait::mutex};
    case Api::pthread_spin_lock:
      return {Wait::spin_lock};
    case Api::pthread_rwlock_rdlock:
    case Api::pthread_rwlock_timedrdlock:
    case Api::pthread_rwlock_clockrdlock:
      return {Wait::reader, true, false};
    case Api::pthread_rwlock_tryrdlock:
      return {Wait::nothing, true, false};
    case Api::pthread_rwlock_wrlock:
    case Api::pthread_rwlock_timedwrlock:
    case Api::pthread_rwlock_clockwrlock:
      return {Wait::writer};
    case Api::sem_wait:
    case Api::sem_timedwait:
    case Api::sem_clockwait:
      return {Wait::semaphore};
    case Api::pthread_once:
    case Api::call_once:
      return {Wait::once};
    case Api::pthread_join:
    case Api::pthread_timedjoin_np:
    case Api::pthread_clockjoin_np:
    case Api::thrd_join:
      return {Wait::thread, true, false};
    case Api::read:
    case Api::readv:
    case Api::recv:
    case Api::recvfrom:
    case Api::recvmsg:
    case Api::recvmmsg:
    case Api::accept:
    case Api::accept4:
    case Api::eventfd_read:
      return {Wait::descriptors, true, true, POLLIN};
    case Api::write:
    case Api::writev:
    case Api::send:
    case Api::sendto:
    case Api::sendmsg:
    case Api::sendmmsg:
    case Api::eventfd_write:
      return {Wait::descriptors, true, true, POLLOUT};
    case Api::nanosleep:
    case Api::clock_nanosleep:
    case Api::usleep:
    case Api::sleep:
    case Api::thrd_sleep:
      return {Wait::sleep, true, false};
    case Api::sched_yield:
    case Api::thrd_yield:
      return {Wait::nothing, true, false, 0, true};
    case Api::clock_gettime:
    case Api::gettimeofday:
    case Api::time:
    case Api::getrandom:
    case Api::getentropy:
    case Api::rand:
    case Api::random:
      return {Wait::nothing, false};
    case Api::system:
    case Api::flock:
    case Api::lockf:
    case Api::semop:
    case Api::semtimedop:
    case Api::msgsnd:
    case Api::msgrcv:
    case Api::mq_send:
    case Api::mq_receive:
    case Api::mq_timedsend:
    case Api::mq_timedreceive:
      return {Wait::outside};
    default:
      return {};
  }
}

const ApiFacts& facts_of(const Visit& visit) {
  return api_facts[static_cast<size_t>(visit.api())];
}

bool is_path(Api api) {
  switch (api) {
    case Api::open:
    case Api::openat:
    case Api::access:
    case Api::stat:
    case Api::rename:
    case Api::unlink:
    case Api::mkdir:
      return true;
    default:
      return false;
  }
}

bool is_sleep(Wait wait) {
  return wait == Wait::sleep;
}

bool is_lock(Wait wait) {
  return wait == Wait::mutex || wait == Wait::spin_lock || wait == Wait::reader ||
         wait == Wait::writer;
}

// Descriptors are small numbers, all other objects addresses.
uint64_t name_object(const Visit& visit, uint64_t object) {
  if (is_path(visit.api())) return files_object;
  return object < (uint64_t{1} << 32) && object != 0 ? object | descriptor_object : object;
}

Step step_of(const Visit& visit, Wait wait, uint64_t object) {
  Step step{};
  step.wait = wait;
  step.writes = true;
  step.api = static_cast<uint16_t>(visit.api());
  step.site = visit.site();
  step.may_switch = visit.site() != none;
  step.object = object;
  step.address = reinterpret_cast<const volatile void*>(object);
  step.deadline = forever;
  return step;
}

int64_t deadline_after(int64_t span) {
  if (span < 0) return forever;
  const int64_t now = virtual_now();
  return span < forever - now ? now + span : forever;
}

// The plan's time instead of the program's, where it has one.
int64_t span_of(const Visit& visit, const Subject& subject) {
  if (visit.other_time() >= 0) return visit.other_time();
  return (facts_of(visit).traits & api_timed) != 0 ? subject.value : -1;
}

Woken woken() {
  const Participant* me = this_participant();
  if (me == nullptr) return Woken::ready;
  if (me->timed_out) return Woken::timed_out;
  return me->interrupted ? Woken::interrupted : Woken::ready;
}

bool can_be_cancelled(Wait wait) {
  switch (wait) {
    case Wait::semaphore:
    case Wait::thread:
    case Wait::descriptors:
    case Wait::child:
    case Wait::signal:
    case Wait::handler:
    case Wait::sleep:
      return true;
    default:
      return false;
  }
}

// In a handler that has interrupted the choice of who goes on: calls are made as they come.
bool is_within_decision() {
  const Participant* me = this_participant();
  return me != nullptr && is_deciding(*me);
}

// A cancelled thread ends here.
Woken take(const Step& step) {
  if (is_within_decision()) return Woken::ready;
  if (can_be_cancelled(step.wait)) pthread_testcancel();
  if (!step.may_switch && goes_on(step)) return Woken::ready;
  take_step(step);
  const Woken how = woken();
  if (how == Woken::interrupted) pthread_testcancel();
  return how;
}

bool never_blocks(int descriptor) {
  const long flags = raw_syscall(__NR_fcntl, descriptor, F_GETFL);
  return failed(flags) || (flags & O_NONBLOCK) != 0;
}

// -1: it has none, or is no socket.
int64_t time_out_of(int descriptor, short events) {
  timeval time{};
  socklen_t size = sizeof time;
  const int option = events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;
  if (failed(raw_syscall(__NR_getsockopt, descriptor, SOL_SOCKET, option, as_word(&time),
                         as_word(&size))))
    return -1;
  const int64_t ns = to_ns({time.tv_sec, time.tv_usec * 1000});
  return ns > 0 ? ns : -1;
}

// Calls that a signal does not end, or that are made again afterwards.
Woken take_again(const Step& step) {
  Woken how = take(step);
  while (how == Woken::interrupted) how = take(step);
  return how;
}

Woken take_for_descriptor(Step step, short events, int flags) {
  const int descriptor = static_cast<int>(step.object & 0xffffffff);
  pollfd watched{descriptor, events, 0};
  step.object = static_cast<uint32_t>(descriptor) | descriptor_object;
  step.descriptors = &watched;
  step.descriptor_count = 1;
  if ((flags & MSG_DONTWAIT) != 0 || never_blocks(descriptor)) step.wait = Wait::nothing;
  if (step.wait != Wait::nothing) step.deadline = deadline_after(time_out_of(descriptor, events));
  return take_again(step);
}

Woken take_for_thread(Step step) {
  Participant* target = participant_of(static_cast<pthread_t>(step.object));
  step.id = target != nullptr ? static_cast<int32_t>(target->number) : 0;
  step.object = target != nullptr ? target->number | thread_object : 0;
  if (target == nullptr) step.wait = Wait::nothing;
  step.may_switch |= watches_races();  // libraries join threads, too, and that orders what they do
  const Woken how = take_again(step);
  if (how == Woken::ready && target != nullptr && target != this_participant())
    target->joined = true;
  return how;
}

bool releases(Api api) {
  switch (api) {
    case Api::pthread_mutex_unlock:
    case Api::pthread_rwlock_unlock:
    case Api::pthread_spin_unlock:
    case Api::mtx_unlock:
    case Api::sem_post:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Turn::take(const Visit& visit, const Subject& subject, int flags) {
  const Manner manner = manner_of(visit.api());
  if (!manner.is_point) return;
  if (subject.value == wrong_time) return;
  Step step = step_of(visit, manner.wait, subject.object);
  step.writes = manner.writes;
  step.yields = manner.yields;
  if (manner.wait == Wait::outside) {
    is_out_of_sight_ = true;
    return leave_sight(facts_of(visit).name);
  }
  if (manner.wait == Wait::thread) {
    step.deadline = deadline_after(span_of(visit, subject));
    woken_ = take_for_thread(step);
    return;
  }
  if (manner.wait == Wait::descriptors) {
    woken_ = take_for_descriptor(step, manner.events, flags);
    return;
  }
  step.object = name_object(visit, subject.object);
  step.deadline = deadline_after(span_of(visit, subject));
  if (is_sleep(manner.wait)) {
    step.may_switch = true;
    step.object = 0;
  }
  woken_ = is_sleep(manner.wait) ? agent::take(step) : take_again(step);
  if (releases(visit.api())) {
    released_by_ = &visit;
    give_lock_back(step.object);
  } else if (is_lock(manner.wait) && woken_ == Woken::ready) {
    hold_lock(step.object, manner.wait == Wait::reader);
  }
}

namespace {

bool is_shared(const pthread_cond_t& condition) {
  return (condition.__data.__wrefs & 1) != 0;
}

// glibc's words of a barrier: the third is the number of threads, the fourth whether it is shared.
uint32_t word_of(const pthread_barrier_t& barrier, size_t number) {
  uint32_t word;
  memcpy(&word, barrier.__size + number * sizeof word, sizeof word);
  return word;
}

}  // namespace

int lock_again(const Visit& visit, pthread_mutex_t* mutex) {
  Step step = step_of(visit, Wait::mutex, reinterpret_cast<uint64_t>(mutex));
  while (!goes_on(step)) take_step(step);
  return real::pthread_mutex_lock(mutex);
}

int wait_for_condition(const Visit& visit, pthread_cond_t* condition, pthread_mutex_t* mutex,
                       const Subject& subject) {
  Step before = step_of(visit, Wait::nothing, reinterpret_cast<uint64_t>(condition));
  if (before.may_switch) take_step(before);
  pthread_testcancel();
  const int failed_unlock = real::pthread_mutex_unlock(mutex);
  if (failed_unlock != 0) return failed_unlock;
  Step step = step_of(visit, Wait::condition, reinterpret_cast<uint64_t>(condition));
  step.mutex = mutex;
  step.queue = queue_of(condition, is_shared(*condition));
  step.deadline = deadline_after(span_of(visit, subject));
  take_step(step);
  const Woken how = woken();
  const int failed_lock = lock_again(visit, mutex);
  if (failed_lock != 0) return failed_lock;
  if (how == Woken::interrupted) pthread_testcancel();
  return how == Woken::timed_out ? ETIMEDOUT : 0;
}

void wake_condition(const void* condition, uint32_t count) {
  if (!is_controlled()) return;
  const bool shared = is_shared(*static_cast<const pthread_cond_t*>(condition));
  wake(Wait::condition, queue_of(condition, shared), count);
}

int wait_at_barrier(const Visit& visit, pthread_barrier_t* barrier) {
  const uint32_t needed = word_of(*barrier, 2);
  Step step = step_of(visit, Wait::nothing, reinterpret_cast<uint64_t>(barrier));
  if (step.may_switch) take_step(step);
  step.queue = queue_of(barrier, word_of(*barrier, 3) != 0);
  if (count_waiting(Wait::barrier, step.queue) + 1 >= needed) {
    wake(Wait::barrier, step.queue, UINT_MAX);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  step.wait = Wait::barrier;
  take_step(step);
  return 0;
}

long wait_on_futex(const Visit& visit, const uint32_t* word, bool is_shared, uint32_t expected,
                   int64_t span) {
  Step step = step_of(visit, Wait::nothing, reinterpret_cast<uint64_t>(word));
  if (step.may_switch) take_step(step);
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) return -EAGAIN;
  step.wait = Wait::futex;
  step.queue = queue_of(word, is_shared);
  step.deadline = deadline_after(span);
  take_step(step);
  switch (woken()) {
    case Woken::timed_out:
      return -ETIMEDOUT;
    case Woken::interrupted:
      return -EINTR;
    case Woken::ready:
      break;
  }
  return 0;
}

Woken wait_for_descriptors(const Visit& visit, pollfd* descriptors, uint32_t count, int64_t span,
                           uint64_t object) {
  Step step = step_of(visit, Wait::descriptors, object | descriptor_object);
  step.descriptors = descriptors;
  step.descriptor_count = count;
  step.deadline = deadline_after(span);
  if (span == 0) {
    step.wait = Wait::nothing;
    step.yields = true;
  } else if (count == 0) {
    step.wait = Wait::sleep;
  }
  return take(step);
}

// A signal that was held back may be handled as soon as the mask allows it.
void wait_for_handler(const Visit& visit, const sigset_t* mask) {
  Participant* me = this_participant();
  if (me == nullptr) return;
  const uint32_t before = me->handlers;
  uint64_t blocked = 0, own = 0;
  if (mask != nullptr) {
    memcpy(&blocked, mask, sizeof blocked);
    raw_syscall(__NR_rt_sigprocmask, SIG_SETMASK, as_word(&blocked), as_word(&own),
                kernel_mask_size);
  }
  const Step step = step_of(visit, Wait::handler, 0);
  while (me->handlers == before && !is_within_decision()) take(step);
  if (mask != nullptr)
    raw_syscall(__NR_rt_sigprocmask, SIG_SETMASK, as_word(&own), 0, kernel_mask_size);
}

Woken wait_for_signal(const Visit& visit, const sigset_t& signals, int64_t span) {
  Step step = step_of(visit, Wait::signal, 0);
  memcpy(&step.signals, &signals, sizeof step.signals);
  step.deadline = deadline_after(span);
  return take(step);
}

Woken wait_for_child(const Visit& visit, int id_type, int id, int options) {
  Step step = step_of(visit, Wait::child, thread_object);
  step.id_type = id_type;
  step.id = id;
  step.options = options;
  return take(step);
}

void turn_after(const Visit& visit) {
  if (!is_controlled()) return;
  const Step step = step_of(visit, Wait::nothing, 0);
  if (step.may_switch) take_step(step);
}

namespace {

// Of the plan: no place of the program, and nothing that others could see.
Step step_of_plan(Wait wait, int64_t span) {
  Step step{};
  step.wait = wait;
  step.api = no_api;
  step.site = none;
  step.may_switch = true;
  step.deadline = deadline_after(span);
  return step;
}

void take_late(const Step& step) {
  Participant* me = this_participant();
  if (me == nullptr) return;
  if (step.deadline > me->late_until) me->late_until = step.deadline;
  take_step(step);
}

}  // namespace

// A signal ends a sleep, but not lateness.
void be_late_in_turn(int64_t ns) {
  const Step step = step_of_plan(Wait::sleep, ns);
  do take_late(step);
  while (!is_within_decision() && this_participant() != nullptr && woken() == Woken::interrupted &&
         virtual_now() < step.deadline);
}

Held hold_in_turn(const Rule& hold) {
  Step step = step_of_plan(Wait::held, static_cast<int64_t>(hold.duration_ns));
  step.id = static_cast<int32_t>(&hold - memory().rules.first);
  if (!is_over(hold)) take_late(step);
  if (is_over(hold)) return has_matched(hold) ? Held::passed : Held::impossible;
  return woken() == Woken::timed_out ? Held::let_go : Held::impossible;
}

void wait_for_late_threads(int64_t at_most_ns) {
  const Participant* me = this_participant();
  if (me == nullptr) return;
  bool somebody_is_late = false;
  int64_t latest = virtual_now();
  for_each_living([&](const Participant& thread) {
    if (&thread == me || !is_own(thread) || thread.late_until == 0) return;
    somebody_is_late = true;
    if (thread.late_until > latest) latest = thread.late_until;
  });
  if (!somebody_is_late) return;  // a step would be a switch point that the program does not have
  take_step(step_of_plan(Wait::late_threads, latest - virtual_now() + at_most_ns));
}

void turn_before_exit() {
  if (!is_controlled() || this_participant() == nullptr) return;
  Step step{};
  step.api = no_api;
  step.site = none;
  step.may_switch = true;
  step.exits = true;
  step.deadline = forever;
  take_step(step);
}

void yield_turn() {
  Step step{};
  step.api = static_cast<uint16_t>(Api::sched_yield);
  step.site = none;
  step.yields = true;
  step.deadline = forever;
  take_step(step);
}

}  // namespace unflake::agent
