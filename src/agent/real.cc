#include "agent/real.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/prctl.h>
#include <string.h>

#include "agent/raw.h"

extern "C" {
extern const unflake::agent::RealFunction first_real[] __asm__("__start_unflake_real")
    __attribute__((visibility("hidden")));
extern const unflake::agent::RealFunction end_of_real[] __asm__("__stop_unflake_real")
    __attribute__((visibility("hidden")));
}

namespace unflake::agent {
namespace {

bool is_libcs(void* function) {
  dl_find_object found{};
  return _dl_find_object(function, &found) == 0 &&
         strstr(found.dlfo_link_map->l_name, "/libc.so.") != nullptr;
}

// libc may give the oldest of several versions to a caller that asks for none. What comes before
// libc, a sanitizer, has no versions.
void* find(const RealFunction& function) {
  void* next = dlsym(RTLD_NEXT, function.name);
  if (function.version == nullptr || !is_libcs(next)) return next;
  void* found = dlvsym(RTLD_NEXT, function.name, function.version);
  return found != nullptr ? found : next;
}

}  // namespace

void resolve_real_functions() {
  static bool begun = false;
  if (begun) return;
  begun = true;  // the lookup itself may come by here: through a program's own malloc
  for (const RealFunction* function = first_real; function != end_of_real; ++function)
    *function->place = find(*function);
}

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
