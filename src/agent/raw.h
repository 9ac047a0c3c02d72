#pragma once

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

// System calls as the kernel sees them: no hook, no errno, no cancellation point, fit for a signal
// handler. A result from -4095 to -1 is a negated errno.
namespace unflake::agent {

inline long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

#ifdef UNFLAKE_FAULTS
// A build of the agent for tests, in which they decide what fails.
long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0);
#else
inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  return call_kernel(number, a, b, c, d, e, f);
}
#endif

inline long as_word(const void* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline bool failed(long result) {
  return result < 0 && result >= -4095;
}

}  // namespace unflake::agent
