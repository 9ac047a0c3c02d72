#include <sched.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <unistd.h>

#include "agent/images.h"
#include "agent/real.h"
#include "agent/times.h"
#include "agent/visit.h"

namespace unflake::agent {

using protocol::Api;

HOOK(int, nanosleep, (const timespec* time, timespec* rest)) {
  Visit visit(Api::nanosleep, CALLER, {0, within(time)});
  timespec room;
  const int result = real::nanosleep(relative_time(visit, time, room), rest);
  return visit.leave(result, result == 0);
}

HOOK(int, clock_nanosleep, (clockid_t clock, int flags, const timespec* time, timespec* rest)) {
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  Visit visit(Api::clock_nanosleep, CALLER, {0, absolute ? until(clock, time) : within(time)});
  timespec room;
  const timespec* passed =
      absolute ? absolute_time(visit, clock, time, room) : relative_time(visit, time, room);
  const int result = real::clock_nanosleep(clock, flags, passed, rest);
  return visit.leave(result, result == 0);
}

HOOK(int, usleep, (useconds_t time)) {
  Visit visit(Api::usleep, CALLER, {0, time * int64_t{1000}});
  const int64_t other = visit.other_time();
  const int result = real::usleep(other < 0 ? time : static_cast<useconds_t>(other / 1000));
  return visit.leave(result, result == 0);
}

// The plan's time may be less than a second.
HOOK(unsigned, sleep, (unsigned time)) {
  Visit visit(Api::sleep, CALLER, {0, time * ns_per_second});
  if (visit.other_time() < 0) {
    const unsigned rest = real::sleep(time);
    return visit.leave(rest, rest == 0);
  }
  const timespec other = to_timespec(visit.other_time());
  const int result = real::nanosleep(&other, nullptr);
  return visit.leave(result == 0 ? 0u : 1u, result == 0);
}

HOOK(int, thrd_sleep, (const timespec* time, timespec* rest)) {
  Visit visit(Api::thrd_sleep, CALLER, {0, within(time)});
  timespec room;
  const int result = real::thrd_sleep(relative_time(visit, time, room), rest);
  return visit.leave(result, result == 0);
}

PLAIN_HOOK(int, sched_yield, (), ())

HOOK(void, thrd_yield, ()) {
  if (passes(Api::thrd_yield, CALLER)) return real::thrd_yield();
  Visit visit(Api::thrd_yield, CALLER);
  real::thrd_yield();
  visit.leave(0);
}

namespace {

// The C++ library does not believe that a wait has timed out before its own clock says so. When the
// plan has cut a wait short, its next look at the clock is that one.
void tell_skipped_time(const void* caller, timespec* time) {
  const uint64_t skipped = this_thread.skipped_ns;
  this_thread.skipped_ns = 0;
  const LoadedImage* image = image_at(reinterpret_cast<uint64_t>(caller));
  if (image == nullptr || !image->is_cxx_runtime || now_ns() > this_thread.skipped_until_ns) return;
  *time = to_timespec(to_ns(*time) + static_cast<int64_t>(skipped));
}

}  // namespace

HOOK(int, clock_gettime, (clockid_t clock, timespec* time)) {
  if (this_thread.skipped_ns == 0 && passes(Api::clock_gettime, CALLER))
    return real::clock_gettime(clock, time);
  Visit visit(Api::clock_gettime, CALLER, {word(clock)});
  const int result = visit.leave(real::clock_gettime(clock, time));
  if (this_thread.skipped_ns != 0 && result == 0) tell_skipped_time(CALLER.address, time);
  return result;
}

PLAIN_HOOK(int, gettimeofday, (timeval * time, void* zone), (time, zone))
PLAIN_HOOK(time_t, time, (time_t * time), (time))

namespace {

// A timer that is set to a moment, and one that is switched off, keep their values.
const itimerspec* timer_to_pass(const Visit& visit, bool absolute, const itimerspec* given,
                                itimerspec& room) {
  if (visit.other_time() < 0 || absolute || given == nullptr || to_ns(given->it_value) <= 0)
    return given;
  room = {given->it_interval, to_timespec(time_to_arm(visit))};
  return &room;
}

int64_t first_time(bool absolute, const itimerspec* given) {
  return given == nullptr || absolute ? -1 : to_ns(given->it_value);
}

}  // namespace

HOOK(int, timerfd_settime, (int timer, int flags, const itimerspec* value, itimerspec* old)) {
  const bool absolute = (flags & TFD_TIMER_ABSTIME) != 0;
  Visit visit(Api::timerfd_settime, CALLER, {word(timer), first_time(absolute, value)});
  itimerspec room;
  return visit.leave(
      real::timerfd_settime(timer, flags, timer_to_pass(visit, absolute, value, room), old));
}

HOOK(int, timer_settime, (timer_t timer, int flags, const itimerspec* value, itimerspec* old)) {
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  Visit visit(Api::timer_settime, CALLER, {word(timer), first_time(absolute, value)});
  itimerspec room;
  return visit.leave(
      real::timer_settime(timer, flags, timer_to_pass(visit, absolute, value, room), old));
}

HOOK(int, setitimer, (int which, const itimerval* value, itimerval* old)) {
  const int64_t time = value != nullptr ? within(&value->it_value) : -1;
  Visit visit(Api::setitimer, CALLER, {word(which), time});
  itimerval other;
  if (visit.other_time() >= 0 && time > 0) {
    other = {value->it_interval, to_timeval(time_to_arm(visit))};
    value = &other;
  }
  return visit.leave(real::setitimer(which, value, old));
}

HOOK(unsigned, alarm, (unsigned seconds)) {
  Visit visit(Api::alarm, CALLER, {0, seconds * ns_per_second});
  if (visit.other_time() < 0 || seconds == 0) return visit.leave(real::alarm(seconds));
  const itimerval other{{0, 0}, to_timeval(time_to_arm(visit))};
  itimerval old{};
  real::setitimer(ITIMER_REAL, &other, &old);
  return visit.leave(static_cast<unsigned>(old.it_value.tv_sec + (old.it_value.tv_usec > 0)));
}

}  // namespace unflake::agent
