#include "agent/schedule/virtual_clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/schedule/baton.h"
#include "agent/schedule/turns.h"

namespace unflake::agent {
namespace {

constexpr int64_t look_ns = 1000;
constexpr uint32_t looks_until_yield = 16;

constinit thread_local struct {
  uint64_t steps;
  uint32_t looks;
} looking __attribute__((tls_model("initial-exec"))) = {};

}  // namespace

bool is_virtual(clockid_t clock) {
  return clock >= 0 && clock < most_clocks && clock != CLOCK_PROCESS_CPUTIME_ID &&
         clock != CLOCK_THREAD_CPUTIME_ID && state->clocks_began[clock] != 0;
}

void begin_virtual_clock() {
  for (clockid_t clock = 0; clock < most_clocks; ++clock)
    state->clocks_began[clock] = static_cast<int64_t>(now_ns(clock));
}

int64_t program_now(clockid_t clock) {
  if (!is_controlled() || !is_virtual(clock)) return static_cast<int64_t>(now_ns(clock));
  return state->clocks_began[clock] + virtual_now();
}

int64_t look_at_clock(clockid_t clock) {
  pass_virtual_time(look_ns);
  if (looking.steps != steps_so_far()) looking = {steps_so_far(), 0};
  if (++looking.looks >= looks_until_yield) {
    yield_turn();
    looking = {steps_so_far(), 0};
  }
  return program_now(clock);
}

}  // namespace unflake::agent

namespace unflake::agent {

namespace real {
extern int (*timer_settime)(timer_t timer, int flags, const itimerspec* value, itimerspec* old);
}

namespace {

constexpr size_t most_of_system = 64;
uint64_t of_system[most_of_system];
size_t of_system_count = 0;

constexpr int64_t shortest_delay = 1000;

Timer* find(TimerKind kind, uint64_t id) {
  for (uint32_t i = 0; i < state->timers_used; ++i) {
    Timer& timer = state->timers[i];
    if (timer.is_set && timer.process == own_process && timer.kind == kind && timer.id == id)
      return &timer;
  }
  return nullptr;
}

Timer* room_for_one() {
  for (uint32_t i = 0; i < state->timers_used; ++i)
    if (!state->timers[i].is_set) return &state->timers[i];
  return state->timers_used < most_timers ? &state->timers[state->timers_used++] : nullptr;
}

// A descriptor is readable, and a signal there, a moment after its timer was set; the next decision
// must not come before that.
void go_off(const Timer& timer, int64_t delay_ns) {
  const itimerspec at_once{{0, 0}, to_timespec(delay_ns)};
  const itimerval signal_at_once{{0, 0}, {0, delay_ns / 1000}};
  switch (timer.kind) {
    case TimerKind::descriptor: {
      const int descriptor = static_cast<int>(timer.id);
      if (failed(raw_syscall(__NR_timerfd_settime, descriptor, 0, as_word(&at_once), 0))) return;
      pollfd readable{descriptor, POLLIN, 0};
      raw_syscall(__NR_poll, as_word(&readable), 1, 1000);
      return;
    }
    case TimerKind::interval:
      raw_syscall(__NR_setitimer, ITIMER_REAL, as_word(&signal_at_once), 0);
      break;
    case TimerKind::posix:
      real::timer_settime(reinterpret_cast<timer_t>(timer.id), 0, &at_once, nullptr);
      break;
  }
  note_unrepeatable("a timer that sends a signal");
  if (delay_ns > shortest_delay) return;
  const timespec arrival{0, 1'000'000};
  raw_syscall(__NR_nanosleep, as_word(&arrival), 0);
}

}  // namespace

TimerSetting set_virtual_timer(TimerKind kind, uint64_t id, const TimerSetting& setting) {
  Timer* timer = find(kind, id);
  TimerSetting before{};
  if (timer != nullptr) {
    const int64_t left = timer->deadline - virtual_now();
    before = {left > 0 ? left : 1, timer->interval};
    timer->is_set = false;
  }
  if (setting.span <= 0) return before;
  timer = room_for_one();
  if (timer == nullptr)
    note_unrepeatable("more timers than can be controlled");
  else
    *timer = {true, kind, own_process, id, virtual_now() + setting.span, setting.interval};
  return before;
}

void forget_timer(TimerKind kind, uint64_t id) {
  if (Timer* timer = find(kind, id)) timer->is_set = false;
}

void leave_to_system(uint64_t posix_timer) {
  if (of_system_count < most_of_system) of_system[of_system_count++] = posix_timer;
}

bool is_left_to_system(uint64_t posix_timer) {
  for (size_t i = 0; i < of_system_count; ++i)
    if (of_system[i] == posix_timer) return true;
  return false;
}

int64_t next_timer() {
  int64_t next = forever;
  for (uint32_t i = 0; i < state->timers_used; ++i)
    if (state->timers[i].is_set && state->timers[i].deadline < next)
      next = state->timers[i].deadline;
  return next;
}

namespace {

void begin_next_interval(Timer& timer) {
  const int64_t now = virtual_now();
  timer.is_set = timer.interval > 0;
  if (timer.is_set)
    timer.deadline += (1 + (now - timer.deadline) / timer.interval) * timer.interval;
}

// Its threads are all out of sight. The alarm clock is one that anybody can ring.
void ring_for(Timer& timer) {
  begin_next_interval(timer);
  note_unrepeatable("a timer of a process out of sight");
  if (timer.kind == TimerKind::interval) raw_syscall(__NR_kill, timer.process, SIGALRM);
}

}  // namespace

void fire_own_timers(int64_t delay_ns) {
  for (uint32_t i = 0; i < state->timers_used; ++i) {
    Timer& timer = state->timers[i];
    if (!timer.is_set || timer.process != own_process || timer.deadline > virtual_now()) continue;
    begin_next_interval(timer);
    go_off(timer, delay_ns);
  }
}

void fire_timers(int64_t delay_ns) {
  fire_own_timers(delay_ns);
  for (uint32_t i = 0; i < state->timers_used; ++i) {
    Timer& timer = state->timers[i];
    if (timer.is_set && timer.deadline <= virtual_now() && !ask_process(timer.process))
      ring_for(timer);
  }
}

void forget_timers_of(uint32_t process) {
  for (uint32_t i = 0; i < state->timers_used; ++i)
    if (state->timers[i].process == process) state->timers[i].is_set = false;
}

}  // namespace unflake::agent
