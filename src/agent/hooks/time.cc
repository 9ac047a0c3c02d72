#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/time_values.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"
#include "agent/schedule/virtual_clock.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

using protocol::Api;

namespace {

// std::this_thread::sleep_until() of a clock that can be set sleeps for what is left, and looks at
// the clock again. What is left is never a round time; one that a program asks for is.
void foresee_look_after_sleep(const Visit& visit, int64_t asked, int64_t realtime) {
  constexpr int64_t round = 10'000;
  const int64_t end = realtime + asked;
  if (visit.other_time() >= 0 && asked > 0 && asked % round != 0)
    foresee_looks(CLOCK_REALTIME, end, end, true, 1);
}

// In a controlled run: 0, or EINTR and the rest.
int sleep_in_turn(const Visit& visit, const Subject& subject, timespec* rest) {
  const int64_t end = virtual_now() + subject.value;
  const Turn turn(visit, subject);
  if (!turn.interrupted()) return 0;
  const int64_t left = end - virtual_now();
  if (rest != nullptr) *rest = to_timespec(left > 0 ? left : 0);
  return EINTR;
}

int by_errno(int error) {
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace

HOOK(int, nanosleep, (const timespec* time, timespec* rest)) {
  const int64_t asked = within(time);
  Visit visit(Api::nanosleep, CALLER, {0, asked});
  if (models({0, asked})) {
    const int result = by_errno(sleep_in_turn(visit, {0, asked}, rest));
    return visit.leave(result, result == 0);
  }
  const auto realtime =
      visit.other_time() >= 0 ? static_cast<int64_t>(now_ns(CLOCK_REALTIME)) : int64_t{0};
  timespec room;
  const int result = real::nanosleep(relative_time(visit, time, room), rest);
  tell_rest(visit, result != 0 && errno == EINTR, rest);
  if (result == 0) foresee_look_after_sleep(visit, asked, realtime);
  return visit.leave(result, result == 0);
}

HOOK(int, clock_nanosleep, (clockid_t clock, int flags, const timespec* time, timespec* rest)) {
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const Subject subject = absolute ? until(0, clock, time) : Subject{0, within(time)};
  Visit visit(Api::clock_nanosleep, CALLER, subject);
  if (models(subject) && is_virtual(clock)) {
    const int result = sleep_in_turn(visit, subject, absolute ? nullptr : rest);
    return visit.leave(result, result == 0);
  }
  timespec room;
  const timespec* passed =
      absolute ? absolute_time(visit, clock, time, room) : relative_time(visit, time, room);
  const int result = real::clock_nanosleep(clock, flags, passed, rest);
  tell_rest(visit, result == EINTR && !absolute, rest);
  return visit.leave(result, result == 0);
}

HOOK(int, usleep, (useconds_t time)) {
  const Subject subject{0, time * int64_t{1000}};
  Visit visit(Api::usleep, CALLER, subject);
  if (is_controlled()) {
    const int result = by_errno(sleep_in_turn(visit, subject, nullptr));
    return visit.leave(result, result == 0);
  }
  const int64_t other = to_us(visit.other_time());
  const auto passed = static_cast<useconds_t>(other < UINT_MAX ? other : UINT_MAX);
  const int result = real::usleep(visit.other_time() < 0 ? time : passed);
  return visit.leave(result, result == 0);
}

// The plan's time may be less than a second. What is left is returned as by libc: in whole
// seconds, rounded down. Otherwise a loop that sleeps for the rest would never end.
HOOK(unsigned, sleep, (unsigned time)) {
  const Subject subject{0, time * ns_per_second};
  Visit visit(Api::sleep, CALLER, subject);
  if (is_controlled()) {
    timespec left{};
    sleep_in_turn(visit, subject, &left);
    return visit.leave(static_cast<unsigned>(left.tv_sec), to_ns(left) == 0);
  }
  if (visit.other_time() < 0) {
    const unsigned rest = real::sleep(time);
    return visit.leave(rest, rest == 0);
  }
  timespec other = to_timespec(visit.other_time());
  const int result = real::nanosleep(&other, &other);
  const int64_t rest = result != 0 ? visit.rest_to_tell(to_ns(other), ns_per_second) : 0;
  return visit.leave(static_cast<unsigned>(rest / ns_per_second), result == 0);
}

HOOK(int, thrd_sleep, (const timespec* time, timespec* rest)) {
  const Subject subject{0, within(time)};
  Visit visit(Api::thrd_sleep, CALLER, subject);
  if (models(subject)) {
    const int result = by_errno(sleep_in_turn(visit, subject, rest));
    return visit.leave(result, result == 0);
  }
  timespec room;
  const int result = real::thrd_sleep(relative_time(visit, time, room), rest);
  tell_rest(visit, result == -1, rest);
  return visit.leave(result, result == 0);
}

// Under control the turn was all there is to it: on a busy machine the processor itself comes back
// late, and loops that yield do so thousands of times.
HOOK(int, sched_yield, ()) {
  if (passes(Api::sched_yield, CALLER)) return real::sched_yield();
  Visit visit(Api::sched_yield, CALLER);
  Turn turn(visit, {});
  return visit.leave(is_controlled() ? 0 : real::sched_yield());
}

HOOK(void, thrd_yield, ()) {
  if (passes(Api::thrd_yield, CALLER)) return real::thrd_yield();
  Visit visit(Api::thrd_yield, CALLER);
  Turn turn(visit, {});
  if (!is_controlled()) real::thrd_yield();
  visit.leave(0);
}

HOOK(int, clock_gettime, (clockid_t clock, timespec* time)) {
  if (this_thread.looks.count == 0 && passes(Api::clock_gettime, CALLER))
    return real::clock_gettime(clock, time);
  Visit visit(Api::clock_gettime, CALLER, {word(clock)});
  if (is_controlled() && is_virtual(clock) && time != nullptr) {
    *time = to_timespec(look_at_clock(clock));
    return visit.leave(0);
  }
  const int result = visit.leave(real::clock_gettime(clock, time));
  if (this_thread.looks.count != 0 && result == 0) tell_foreseen(CALLER.address, clock, time);
  return result;
}

HOOK(int, gettimeofday, (timeval * time, void* zone)) {
  if (passes(Api::gettimeofday, CALLER)) return real::gettimeofday(time, zone);
  Visit visit(Api::gettimeofday, CALLER);
  if (!is_controlled() || time == nullptr) return visit.leave(real::gettimeofday(time, zone));
  const timespec now = to_timespec(look_at_clock(CLOCK_REALTIME));
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return visit.leave(0);
}

HOOK(time_t, time, (time_t * time)) {
  if (passes(Api::time, CALLER)) return real::time(time);
  Visit visit(Api::time, CALLER);
  if (!is_controlled()) return visit.leave(real::time(time));
  const time_t now = to_timespec(look_at_clock(CLOCK_REALTIME)).tv_sec;
  if (time != nullptr) *time = now;
  return visit.leave(now);
}

namespace {

static_assert(TFD_TIMER_ABSTIME == TIMER_ABSTIME);

// Which clock a timer was made for is not known here, but a time since the start of the machine is
// far from one since 1970.
clockid_t clock_meant(int64_t moment) {
  const auto today = static_cast<int64_t>(now_ns(CLOCK_REALTIME));
  return moment > today / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

int64_t longer(int64_t a, int64_t b) {
  return a > b ? a : b;
}

int64_t time_to_first(int flags, const timespec& given) {
  const int64_t first = to_ns(given);
  return (flags & TIMER_ABSTIME) != 0 ? until(0, clock_meant(first), &given).value : first;
}

// A timer with an interval may begin at once.
int64_t asked_time(int flags, const itimerspec* given) {
  if (given == nullptr) return -1;
  if (!is_right(given->it_value) || !is_right(given->it_interval)) return wrong_time;
  if (to_ns(given->it_value) == 0) return 0;
  return longer(time_to_first(flags, given->it_value), to_ns(given->it_interval));
}

int64_t asked_time(const itimerval* given) {
  if (given == nullptr) return -1;
  if (!is_right(given->it_value) || !is_right(given->it_interval)) return wrong_time;
  const int64_t first = within(&given->it_value);
  return first > 0 ? longer(first, within(&given->it_interval)) : 0;
}

int64_t first_to_arm(const Visit& visit, int64_t first) {
  return time_to_arm(visit.changed(first));
}

// More ticks than these leave the program no time for anything else.
int64_t interval_to_arm(const Visit& visit, int64_t interval) {
  constexpr int64_t shortest = 200'000;
  return longer(visit.changed(interval), interval < shortest ? interval : shortest);
}

itimerval times_to_arm(const Visit& visit, const itimerval& given) {
  return {to_timeval(interval_to_arm(visit, within(&given.it_interval))),
          to_timeval(first_to_arm(visit, within(&given.it_value)))};
}

// To be cancelled when somebody sets the clock, a timer must be set to a time of that clock.
bool is_cancelled_with_clock(int flags, const itimerspec& given) {
  return (flags & TFD_TIMER_CANCEL_ON_SET) != 0 &&
         clock_meant(to_ns(given.it_value)) == CLOCK_REALTIME;
}

timespec date_after(int64_t span) {
  const auto now = static_cast<int64_t>(now_ns(CLOCK_REALTIME));
  return to_timespec(span < INT64_MAX - now ? now + span : INT64_MAX);
}

// Asks the timer how long that is by its own clock. When that time has passed, it has ticked.
template <class Timer, class Set, class Get>
int arm_until(const Visit& visit, Timer timer, int flags, const itimerspec& given,
              timespec interval, itimerspec* old, Set set, Get get) {
  const int64_t ticked = time_to_first(flags, given.it_value) == 0 ? to_ns(interval) : 0;
  itimerspec other{interval, given.it_value};
  const int result = set(timer, flags, &other, old);
  itimerspec left{};
  if (result != 0 || get(timer, &left) != 0 || to_ns(left.it_value) <= ticked) return result;
  const int64_t span = first_to_arm(visit, to_ns(left.it_value));
  const bool is_date = is_cancelled_with_clock(flags, given);
  other.it_value = is_date ? date_after(span) : to_timespec(span);
  return set(timer, is_date ? flags : 0, &other, nullptr);
}

// A disarmed timer stays disarmed.
template <class Timer, class Set, class Get>
int arm(const Visit& visit, Timer timer, int flags, const itimerspec* given, itimerspec* old,
        Set set, Get get) {
  if (visit.other_time() < 0 || given == nullptr || to_ns(given->it_value) <= 0)
    return set(timer, flags, given, old);
  const timespec interval = to_timespec(interval_to_arm(visit, to_ns(given->it_interval)));
  if ((flags & TIMER_ABSTIME) != 0)
    return arm_until(visit, timer, flags, *given, interval, old, set, get);
  const itimerspec other{interval, to_timespec(first_to_arm(visit, to_ns(given->it_value)))};
  return set(timer, flags, &other, old);
}

// In a controlled run the system's timer is off until virtual time has come.
template <class Timer, class Set>
int arm_in_turn(const Visit& visit, TimerKind kind, Timer timer, int flags, const itimerspec& given,
                itimerspec* old, Set set) {
  const itimerspec off{};
  const int result = set(timer, 0, &off, nullptr);
  if (result != 0) return result;
  const bool is_off = to_ns(given.it_value) == 0;
  const int64_t first = visit.changed(time_to_first(flags, given.it_value));
  const TimerSetting before = set_virtual_timer(
      kind, word(timer), {is_off ? 0 : longer(first, 1), visit.changed(to_ns(given.it_interval))});
  if (old != nullptr) *old = {to_timespec(before.interval), to_timespec(before.span)};
  return 0;
}

itimerval arm_alarm_in_turn(const Visit& visit, const itimerval& given) {
  const TimerSetting before = set_virtual_timer(
      TimerKind::interval, 0,
      {visit.changed(within(&given.it_value)), visit.changed(within(&given.it_interval))});
  return {to_timeval(before.interval), to_timeval(before.span)};
}

// As the kernel says it: the nearest number, but not none.
unsigned seconds_left(const timeval& time) {
  const bool up = time.tv_sec == 0 ? time.tv_usec > 0 : time.tv_usec >= 500'000;
  return static_cast<unsigned>(time.tv_sec + up);
}

}  // namespace

HOOK(int, timerfd_settime, (int timer, int flags, const itimerspec* value, itimerspec* old)) {
  const Subject subject{word(timer), asked_time(flags, value)};
  Visit visit(Api::timerfd_settime, CALLER, subject);
  Turn turn(visit, subject);
  if (models(subject) && value != nullptr)
    return visit.leave(arm_in_turn(visit, TimerKind::descriptor, timer, flags, *value, old,
                                   real::timerfd_settime));
  return visit.leave(
      arm(visit, timer, flags, value, old, real::timerfd_settime, ::timerfd_gettime));
}

HOOK(int, timer_settime, (timer_t timer, int flags, const itimerspec* value, itimerspec* old)) {
  const Subject subject{word(timer), asked_time(flags, value)};
  Visit visit(Api::timer_settime, CALLER, subject);
  Turn turn(visit, subject);
  if (models(subject) && value != nullptr && !is_left_to_system(word(timer)))
    return visit.leave(
        arm_in_turn(visit, TimerKind::posix, timer, flags, *value, old, real::timer_settime));
  return visit.leave(arm(visit, timer, flags, value, old, real::timer_settime, ::timer_gettime));
}

HOOK(int, setitimer, (int which, const itimerval* value, itimerval* old)) {
  const int64_t time = asked_time(value);
  if (time > 0) signal_timer_was_set();
  Visit visit(Api::setitimer, CALLER, {word(which), time});
  if (models({0, time}) && which == ITIMER_REAL && value != nullptr) {
    const itimerval before = arm_alarm_in_turn(visit, *value);
    if (old != nullptr) *old = before;
    return visit.leave(0);
  }
  if (visit.other_time() < 0 || time <= 0) return visit.leave(real::setitimer(which, value, old));
  const itimerval other = times_to_arm(visit, *value);
  return visit.leave(real::setitimer(which, &other, old));
}

HOOK(unsigned, alarm, (unsigned seconds)) {
  if (seconds > 0) signal_timer_was_set();
  Visit visit(Api::alarm, CALLER, {0, seconds * ns_per_second});
  if (is_controlled())
    return visit.leave(seconds_left(
        arm_alarm_in_turn(visit, {{0, 0}, {static_cast<time_t>(seconds), 0}}).it_value));
  if (visit.other_time() < 0 || seconds == 0) return visit.leave(real::alarm(seconds));
  const itimerval other{{0, 0}, to_timeval(time_to_arm(visit.other_time()))};
  itimerval old{};
  real::setitimer(ITIMER_REAL, &other, &old);
  return visit.leave(seconds_left(old.it_value));
}

// libc's version calls setitimer() and bypasses the hook.
HOOK(useconds_t, ualarm, (useconds_t first, useconds_t interval)) {
  const itimerval given{{0, interval}, {0, first}};
  const int64_t time = asked_time(&given);
  if (time > 0) signal_timer_was_set();
  Visit visit(Api::ualarm, CALLER, {0, time});
  if (models({0, time})) {
    const itimerval before = arm_alarm_in_turn(visit, given);
    return visit.leave(
        static_cast<useconds_t>(before.it_value.tv_sec * 1'000'000 + before.it_value.tv_usec));
  }
  if (visit.other_time() < 0 || time <= 0) return visit.leave(real::ualarm(first, interval));
  const itimerval other = times_to_arm(visit, given);
  itimerval old{};
  real::setitimer(ITIMER_REAL, &other, &old);
  return visit.leave(
      static_cast<useconds_t>(old.it_value.tv_sec * 1'000'000 + old.it_value.tv_usec));
}

// What a timer calls in its own thread, which libc starts with every signal blocked: a probe
// there would be the end of the process.

namespace {

struct Notification {
  protocol::Shared<uint32_t> state;  // 0 free, 1 being written, 2 complete
  void (*function)(sigval);
  sigval value;
};

// Never freed, as a deleted timer may still be about to call. Timers of the same kind share.
constexpr size_t notifications_at_most = 1024;
Notification notifications[notifications_at_most];

void notify(sigval argument) {
  const auto& notification = *static_cast<const Notification*>(argument.sival_ptr);
  unblock_trap();
  notification.function(notification.value);
}

bool is_about(const Notification& notification, const sigevent& event) {
  return notification.state.load() == 2 && notification.function == event.sigev_notify_function &&
         notification.value.sival_ptr == event.sigev_value.sival_ptr;
}

Notification* find_or_add(const sigevent& event) {
  for (Notification& notification : notifications) {
    if (is_about(notification, event)) return &notification;
    if (!notification.state.change(0, 1)) continue;
    notification.function = event.sigev_notify_function;
    notification.value = event.sigev_value;
    notification.state.store(2);
    return &notification;
  }
  return nullptr;
}

}  // namespace

HOOK(int, timer_create, (clockid_t clock, sigevent* event, timer_t* timer)) {
  resolve_real_functions();
  const bool calls = event != nullptr && event->sigev_notify == SIGEV_THREAD;
  Notification* notification = trap_is_taken() && calls ? find_or_add(*event) : nullptr;
  sigevent other{};
  if (notification != nullptr) {
    other = *event;
    other.sigev_notify_function = notify;
    other.sigev_value.sival_ptr = notification;
  }
  if (calls) leave_time_stamps(true);  // the C library's own thread inherits it
  const int result = real::timer_create(clock, notification != nullptr ? &other : event, timer);
  if (calls) leave_time_stamps(false);
  if (result == 0 && is_controlled() && !is_virtual(clock)) leave_to_system(word(*timer));
  return result;
}

}  // namespace unflake::agent
