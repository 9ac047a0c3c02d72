#include <linux/futex.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/real.h"
#include "agent/times.h"
#include "agent/visit.h"

// Libraries that call the kernel past libc's wrappers, with libc's syscall().
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

const timespec* as_time(long word) {
  return reinterpret_cast<const timespec*>(word);
}

bool is_futex_wait(int operation) {
  return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET || operation == FUTEX_LOCK_PI ||
         operation == FUTEX_WAIT_REQUEUE_PI || operation == FUTEX_LOCK_PI2;
}

long futex_wait(const Caller& caller, Arguments with) {
  const int operation = static_cast<int>(with.b) & FUTEX_CMD_MASK;
  const bool relative = operation == FUTEX_WAIT;
  const bool realtime = (with.b & FUTEX_CLOCK_REALTIME) != 0 || operation == FUTEX_LOCK_PI;
  const clockid_t clock = realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const timespec* time = as_time(with.d);
  Visit visit(Api::futex_wait, caller,
              {static_cast<uint64_t>(with.a), relative ? within(time) : until(clock, time)});
  timespec room;
  with.d = reinterpret_cast<long>(relative ? relative_time(visit, time, room)
                                           : absolute_time(visit, clock, time, room));
  const long result = pass_on(SYS_futex, with);
  return visit.leave(result, result != 0 && errno == ETIMEDOUT);
}

long futex(const Caller& caller, const Arguments& with) {
  if (is_futex_wait(static_cast<int>(with.b) & FUTEX_CMD_MASK)) return futex_wait(caller, with);
  if (passes(Api::futex_wake, caller)) return pass_on(SYS_futex, with);
  Visit visit(Api::futex_wake, caller, {static_cast<uint64_t>(with.a), with.c});
  return visit.leave(pass_on(SYS_futex, with));
}

// The APIs whose wrappers add nothing to the system call of the same name. The time of those that
// have one is their fourth argument, in ms.
bool decode(long number, Api& api, bool& has_time) {
  has_time = false;
  switch (number) {
    case SYS_epoll_wait:
      has_time = true;
      api = Api::epoll_wait;
      return true;
    case SYS_epoll_pwait:
      has_time = true;
      api = Api::epoll_pwait;
      return true;
    case SYS_epoll_ctl:
      api = Api::epoll_ctl;
      return true;
    case SYS_connect:
      api = Api::connect;
      return true;
    case SYS_accept:
      api = Api::accept;
      return true;
    case SYS_accept4:
      api = Api::accept4;
      return true;
    case SYS_bind:
      api = Api::bind;
      return true;
    case SYS_listen:
      api = Api::listen;
      return true;
    case SYS_shutdown:
      api = Api::shutdown;
      return true;
    case SYS_sendto:
      api = Api::sendto;
      return true;
    case SYS_sendmsg:
      api = Api::sendmsg;
      return true;
    case SYS_sendmmsg:
      api = Api::sendmmsg;
      return true;
    case SYS_recvfrom:
      api = Api::recvfrom;
      return true;
    case SYS_recvmsg:
      api = Api::recvmsg;
      return true;
    case SYS_recvmmsg:
      api = Api::recvmmsg;
      return true;
    case SYS_read:
      api = Api::read;
      return true;
    case SYS_write:
      api = Api::write;
      return true;
    case SYS_sched_yield:
      api = Api::sched_yield;
      return true;
    default:
      return false;
  }
}

long decoded(long number, Api api, bool has_time, const Caller& caller, Arguments with) {
  const int64_t time = has_time ? within_ms(static_cast<int>(with.d)) : -1;
  Visit visit(api, caller, {static_cast<uint64_t>(with.a), time});
  if (has_time && visit.other_time() >= 0) with.d = to_ms(visit.other_time());
  const long result = pass_on(number, with);
  return visit.leave(result, has_time && result == 0);
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
  Api api;
  bool has_time;
  if (decode(number, api, has_time)) return decoded(number, api, has_time, CALLER, with);
  resolve_real_functions();
  return pass_on(number, with);
}

}  // namespace unflake::agent
