#include "agent/clock.h"

#include <dlfcn.h>
#include <linux/prctl.h>

#include "agent/raw.h"

namespace unflake::agent {
namespace {

using GetTime = int (*)(clockid_t, timespec*);

int ask_kernel(clockid_t clock, timespec* time) {
  return static_cast<int>(raw_syscall(__NR_clock_gettime, clock, as_word(time)));
}

GetTime get_time = ask_kernel;

}  // namespace

// libc's own goes through the vDSO; the next one in the search order may be a sanitizer's.
void resolve_clock() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) return;
  if (void* found = dlsym(libc, "clock_gettime")) get_time = reinterpret_cast<GetTime>(found);
}

void ask_kernel_for_time() {
  get_time = ask_kernel;
}

uint64_t now_ns(clockid_t clock) {
  timespec time{};
  get_time(clock, &time);
  return static_cast<uint64_t>(to_ns(time));
}

uint64_t now_ns() {
  return now_ns(CLOCK_MONOTONIC);
}

void sleep_until(uint64_t deadline_ns) {
  const timespec deadline = to_timespec(static_cast<int64_t>(deadline_ns));
  const long slack = raw_syscall(__NR_prctl, PR_GET_TIMERSLACK);
  raw_syscall(__NR_prctl, PR_SET_TIMERSLACK, 1);
  while (raw_syscall(__NR_clock_nanosleep, CLOCK_MONOTONIC, 1 /* TIMER_ABSTIME */,
                     as_word(&deadline)) == -4 /* EINTR */) {
  }
  if (!failed(slack)) raw_syscall(__NR_prctl, PR_SET_TIMERSLACK, slack);
}

}  // namespace unflake::agent
