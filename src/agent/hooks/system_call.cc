#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/time_values.h"
#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"

// Libraries that bypass libc's wrappers to call the kernel, with libc's syscall().
namespace unflake::agent {

using protocol::Api;

UNFLAKE_REAL(long, syscall, (long number, ...), nullptr)

namespace {

struct Arguments {
  long a, b, c, d, e, f;
};

long pass_on(long number, const Arguments& with) {
  return real::syscall(number, with.a, with.b, with.c, with.d, with.e, with.f);
}

long by_errno(int error) {
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

const timespec* as_time(long word) {
  return reinterpret_cast<const timespec*>(word);
}

bool is_shared_futex(long operation) {
  return (operation & FUTEX_PRIVATE_FLAG) == 0;
}

bool is_futex_wait(int operation) {
  return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET || operation == FUTEX_LOCK_PI ||
         operation == FUTEX_WAIT_REQUEUE_PI || operation == FUTEX_LOCK_PI2;
}

// As the system would answer.
long wait_in_turn(const Visit& visit, const Arguments& with, const Subject& subject) {
  const int64_t span = visit.other_time() >= 0 ? visit.other_time() : subject.value;
  const long result = wait_on_futex(visit, reinterpret_cast<const uint32_t*>(with.a),
                                    is_shared_futex(with.b), static_cast<uint32_t>(with.c), span);
  if (result == 0) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

// Those who wait in their turn, then those of whom only the system knows.
long wake_in_turn(const Visit& visit, const Arguments& with) {
  const Turn turn(visit, {static_cast<uint64_t>(with.a), with.c});
  if (!is_controlled()) return pass_on(SYS_futex, with);
  const int operation = static_cast<int>(with.b) & FUTEX_CMD_MASK;
  const bool is_wake = operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET;
  const uint32_t most = is_wake ? static_cast<uint32_t>(with.c) : UINT_MAX;
  const uint64_t queue = queue_of(reinterpret_cast<void*>(with.a), is_shared_futex(with.b));
  const uint32_t woken = wake(Wait::futex, queue, most);
  const long result = pass_on(SYS_futex, with);
  return result < 0 ? result : result + woken;
}

long futex_wait(const Caller& caller, Arguments with) {
  const int operation = static_cast<int>(with.b) & FUTEX_CMD_MASK;
  const bool relative = operation == FUTEX_WAIT;
  const bool realtime = (with.b & FUTEX_CLOCK_REALTIME) != 0 || operation == FUTEX_LOCK_PI;
  const clockid_t clock = realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const timespec* time = as_time(with.d);
  const auto word = static_cast<uint64_t>(with.a);
  const Subject subject = relative ? Subject{word, within(time)} : until(word, clock, time);
  Visit visit(Api::futex_wait, caller, subject);
  if (models(subject) && (relative || operation == FUTEX_WAIT_BITSET))
    return visit.leave(wait_in_turn(visit, with, subject));
  timespec room;
  with.d = reinterpret_cast<long>(relative ? relative_time(visit, time, room)
                                           : absolute_time(visit, clock, time, room));
  const long result = pass_on(SYS_futex, with);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  // std::counting_semaphore looks twice, but rarely when it was not a time-out.
  if (visit.other_deadline() >= 0 && timed_out && !is_cxx_runtime(caller.address))
    foresee_looks(clock, to_ns(*time), visit.other_deadline(), timed_out, 2);
  return visit.leave(result, timed_out);
}

long futex(const Caller& caller, const Arguments& with) {
  if (is_futex_wait(static_cast<int>(with.b) & FUTEX_CMD_MASK)) return futex_wait(caller, with);
  if (passes(Api::futex_wake, caller)) return pass_on(SYS_futex, with);
  Visit visit(Api::futex_wake, caller, {static_cast<uint64_t>(with.a), with.c});
  return visit.leave(wake_in_turn(visit, with));
}

// The APIs whose wrappers add nothing to the system call of the same name.
struct Decoded {
  long number;
  Api api;
  bool has_time;  // the fourth argument, in ms

  int flags_argument(const Arguments& with) const {
    if (api == Api::sendto || api == Api::sendmmsg || api == Api::recvfrom || api == Api::recvmmsg)
      return static_cast<int>(with.d);
    return api == Api::sendmsg || api == Api::recvmsg ? static_cast<int>(with.c) : 0;
  }
};

constexpr Decoded decoded_calls[] = {
    {SYS_epoll_wait, Api::epoll_wait, true},
    {SYS_epoll_pwait, Api::epoll_pwait, true},
    {SYS_epoll_ctl, Api::epoll_ctl, false},
    {SYS_connect, Api::connect, false},
    {SYS_accept, Api::accept, false},
    {SYS_accept4, Api::accept4, false},
    {SYS_bind, Api::bind, false},
    {SYS_listen, Api::listen, false},
    {SYS_shutdown, Api::shutdown, false},
    {SYS_sendto, Api::sendto, false},
    {SYS_sendmsg, Api::sendmsg, false},
    {SYS_sendmmsg, Api::sendmmsg, false},
    {SYS_recvfrom, Api::recvfrom, false},
    {SYS_recvmsg, Api::recvmsg, false},
    {SYS_recvmmsg, Api::recvmmsg, false},
    {SYS_read, Api::read, false},
    {SYS_write, Api::write, false},
    {SYS_sched_yield, Api::sched_yield, false},
};

const Decoded* decode(long number) {
  for (const Decoded& call : decoded_calls)
    if (call.number == number) return &call;
  return nullptr;
}

long pass_on(const Decoded& call, const Caller& caller, Arguments with) {
  const int64_t time = call.has_time ? within_ms(static_cast<int>(with.d)) : -1;
  const Subject subject{static_cast<uint64_t>(with.a), time};
  Visit visit(call.api, caller, subject);
  if (call.has_time && visit.other_time() >= 0) with.d = to_ms(visit.other_time());
  if (is_controlled() && call.has_time) {
    pollfd watched{static_cast<int>(with.a), POLLIN, 0};
    wait_for_descriptors(visit, &watched, 1, within_ms(static_cast<int>(with.d)), subject.object);
    with.d = 0;
  }
  const Turn turn(visit, subject, call.flags_argument(with));
  const long result = pass_on(call.number, with);
  return visit.leave(result, call.has_time && result == 0);
}

// Clocks and random numbers, which a controlled run has of its own: as by libc's functions.
long ask_by_libc(long number, const Arguments& with) {
  switch (number) {
    case SYS_clock_gettime:
      return ::clock_gettime(static_cast<clockid_t>(with.a), reinterpret_cast<timespec*>(with.b));
    case SYS_gettimeofday:
      return ::gettimeofday(reinterpret_cast<timeval*>(with.a), nullptr);
    case SYS_time:
      return ::time(reinterpret_cast<time_t*>(with.a));
    case SYS_getrandom:
      return ::getrandom(reinterpret_cast<void*>(with.a), static_cast<size_t>(with.b),
                         static_cast<unsigned>(with.c));
    case SYS_nanosleep:
      return ::nanosleep(as_time(with.a), reinterpret_cast<timespec*>(with.b));
    default:
      return by_errno(::clock_nanosleep(static_cast<clockid_t>(with.a), static_cast<int>(with.b),
                                        as_time(with.c), reinterpret_cast<timespec*>(with.d)));
  }
}

bool is_asked_by_libc(long number) {
  return is_controlled() &&
         (number == SYS_clock_gettime || number == SYS_gettimeofday || number == SYS_time ||
          number == SYS_getrandom || number == SYS_nanosleep || number == SYS_clock_nanosleep);
}

// A program must not block the agent's signal this way either.
long change_mask(Arguments with) {
  sigset_t filtered;
  sigset_t given{};
  if (with.b != 0 && with.d == sizeof(uint64_t)) {
    memcpy(&given, reinterpret_cast<const void*>(with.b), sizeof(uint64_t));
    with.b = reinterpret_cast<long>(filter_mask(&given, &filtered));
  }
  return pass_on(SYS_rt_sigprocmask, with);
}

}  // namespace

UNFLAKE_DEFINE(long, syscall, (long number, ...)) {
  va_list list;
  va_start(list, number);
  Arguments with;
  with.a = va_arg(list, long);
  with.b = va_arg(list, long);
  with.c = va_arg(list, long);
  with.d = va_arg(list, long);
  with.e = va_arg(list, long);
  with.f = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) return futex(CALLER, with);
  if (is_asked_by_libc(number)) return ask_by_libc(number, with);
  if (const Decoded* call = decode(number)) return pass_on(*call, CALLER, with);
  resolve_real_functions();
  if (number == SYS_alarm || number == SYS_setitimer) signal_timer_was_set();
  return number == SYS_rt_sigprocmask ? change_mask(with) : pass_on(number, with);
}

}  // namespace unflake::agent
