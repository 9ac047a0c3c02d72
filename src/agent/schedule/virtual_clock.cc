#include "agent/schedule/virtual_clock.h"

#include <link.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

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

namespace {

bool stamps_taken = false;
uint64_t vdso_begin = 0, vdso_end = 0;

void find_vdso() {
  constexpr uint64_t usual_size = 0x2000;
  vdso_begin = getauxval(AT_SYSINFO_EHDR);
  vdso_end = vdso_begin + usual_size;
}

bool set_time_stamps(int how) {
  return !failed(raw_syscall(__NR_prctl, PR_SET_TSC, how));
}

// For clocks of the vDSO, which know the real counter only.
uint64_t real_time_stamp() {
  set_time_stamps(PR_TSC_ENABLE);
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  set_time_stamps(PR_TSC_SIGSEGV);
  return uint64_t{high} << 32 | low;
}

uint64_t time_stamp_at(uint64_t instruction) {
  if (instruction < vdso_begin || instruction >= vdso_end)
    return static_cast<uint64_t>(look_at_clock(CLOCK_MONOTONIC));
  note_unrepeatable("a clock of the vDSO that was read without the C library");
  return real_time_stamp();
}

}  // namespace

namespace {

bool is_of_system(const char* path) {
  return strncmp(path, "/lib", 4) == 0 || strncmp(path, "/usr/lib", 8) == 0 ||
         strstr(path, "libunflake-agent") != nullptr || strstr(path, "vdso") != nullptr;
}

bool has_time_stamps(const uint8_t* code, size_t size) {
  const uint8_t* const end = code + size;
  for (const uint8_t* at = code; at + 2 < end; ++at) {
    at = static_cast<const uint8_t*>(memchr(at, 0x0f, static_cast<size_t>(end - at) - 2));
    if (at == nullptr) return false;
    if (at[1] == 0x31 || (at[1] == 0x01 && at[2] == 0xf9)) return true;
  }
  return false;
}

int look_for_time_stamps(dl_phdr_info* image, size_t, void*) {
  if (is_of_system(image->dlpi_name)) return 0;
  for (int i = 0; i < image->dlpi_phnum; ++i) {
    const auto& segment = image->dlpi_phdr[i];
    const auto* code = reinterpret_cast<const uint8_t*>(image->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        (segment.p_flags & PF_R) != 0 && has_time_stamps(code, segment.p_memsz))
      return 1;
  }
  return 0;
}

}  // namespace

void leave_time_stamps(bool leave) {
  if (stamps_taken) set_time_stamps(leave ? PR_TSC_ENABLE : PR_TSC_SIGSEGV);
}

void take_time_stamps() {
  if (dl_iterate_phdr(look_for_time_stamps, nullptr) == 0) return;
  find_vdso();
  stamps_taken = set_time_stamps(PR_TSC_SIGSEGV);
  if (stamps_taken) ask_kernel_for_time();
}

bool time_stamps_are_taken() {
  return stamps_taken;
}

// rdtsc is 0f 31, and rdtscp, which also tells the processor, 0f 01 f9. A tick is a nanosecond.
bool read_time_stamp(ucontext_t* context) {
  greg_t* registers = context->uc_mcontext.gregs;
  const auto at = static_cast<uint64_t>(registers[REG_RIP]);
  if (!stamps_taken || at == 0) return false;
  uint8_t code[3] = {};
  const iovec here{code, sizeof code}, there{reinterpret_cast<void*>(at), sizeof code};
  if (failed(raw_syscall(__NR_process_vm_readv, own_process, as_word(&here), 1, as_word(&there), 1,
                         0)))
    return false;
  const bool plain = code[0] == 0x0f && code[1] == 0x31;
  const bool with_processor = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
  if (!plain && !with_processor) return false;
  const uint64_t stamp = time_stamp_at(at);
  registers[REG_RAX] = static_cast<greg_t>(stamp & 0xffffffff);
  registers[REG_RDX] = static_cast<greg_t>(stamp >> 32);
  if (with_processor) registers[REG_RCX] = 0;
  registers[REG_RIP] += plain ? 2 : 3;
  return true;
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

int64_t timer_of_descriptor(int descriptor) {
  const Timer* timer = find(TimerKind::descriptor, static_cast<uint64_t>(descriptor));
  return timer != nullptr ? timer->deadline : forever;
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
