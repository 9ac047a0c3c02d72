#include <asm/unistd.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/raw.h"

// Makes the n-th of the calls that the agent makes for itself fail; UNFLAKE_FAILING_CALL is n.
namespace unflake::agent {
namespace {

bool can_fail(long number) {
  switch (number) {
    case __NR_mmap:
    case __NR_mprotect:
    case __NR_rt_sigaction:
    case __NR_rt_sigprocmask:
    case __NR_openat:
    case __NR_pwrite64:
    case __NR_mincore:
    case __NR_fstat:
    case __NR_newfstatat:
    case __NR_readlink:
    case __NR_read:
    case __NR_prctl:
    case __NR_clock_nanosleep:
    case __NR_futex:
      return true;
    default:
      return false;
  }
}

bool is_the_one() {
  static long countdown = -1;
  if (countdown < 0) {
    const char* text = getenv("UNFLAKE_FAILING_CALL");
    countdown = text != nullptr ? atol(text) : 0;
  }
  return __atomic_load_n(&countdown, __ATOMIC_RELAXED) > 0 &&
         __atomic_sub_fetch(&countdown, 1, __ATOMIC_RELAXED) == 0;
}

}  // namespace

long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (can_fail(number) && is_the_one()) return -ENOMEM;
  return call_kernel(number, a, b, c, d, e, f);
}

}  // namespace unflake::agent
